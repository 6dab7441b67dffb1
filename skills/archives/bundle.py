"""Validation of the files of one upload: paths, sizes and contents, with a reason for each refusal."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from core.text.sizes import format_size
from skills.archives.paths import MAX_PATH_LENGTH, check_path, find_path_conflicts
from skills.discovery.filesystem import FileRefused
from skills.discovery.harnesses import DiscoveryCaps
from skills.discovery.results import Refusal, escape_path
from skills.discovery.search import ROOT_PATH


@dataclass(frozen=True)
class FileBundle:
    """The accepted files of one push, and the refusals. Path "." in a refusal means the whole push."""

    files: tuple[tuple[str, bytes], ...]
    refusals: tuple[Refusal, ...]

    @classmethod
    def from_error(cls, error: FileRefused) -> Self:
        """Build a bundle without files and with one refusal for the whole push."""
        return cls((), (Refusal(ROOT_PATH, error.rule, error.reason),))


class BundleEntry(Protocol):
    """A file or folder of a push whose content has not been read yet."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def is_folder(self) -> bool: ...
    def check(self) -> None:
        """Raise FileRefused for problems that the metadata shows, without reading the content."""

    def read_content(self) -> bytes:
        """Return exactly `size` bytes, or raise FileRefused."""


def build_bundle(entries: Iterable[BundleEntry], caps: DiscoveryCaps) -> FileBundle:
    """Validate the entries and read their contents.

    The metadata of all entries is checked against the caps first, so that a zip bomb is refused before
    any content is decompressed.
    """
    refusals = RefusalCollector(caps)
    entries_with_valid_paths = list(filter_valid_paths(entries, refusals))
    valid_files = [
        entry
        for entry in filter_valid_entries(entries_with_valid_paths, refusals, caps)
        if not entry.is_folder
    ]
    if sum([entry.size for entry in valid_files]) > caps.total_bytes:
        raise build_total_size_error(caps)
    files = []
    for entry in sorted(valid_files, key=lambda entry: entry.path):
        with refusals.collect(entry.path):
            files.append((entry.path, entry.read_content()))
    return FileBundle(tuple(files), tuple(sorted(refusals.by_path.values())))


def filter_valid_paths(entries: Iterable[BundleEntry], refusals: "RefusalCollector") -> Iterator[BundleEntry]:
    for entry in entries:
        with refusals.collect(entry.path):
            check_path(entry.path)
            yield entry


def filter_valid_entries(
    entries: Sequence[BundleEntry], refusals: "RefusalCollector", caps: DiscoveryCaps
) -> Iterator[BundleEntry]:
    conflicts = find_path_conflicts((entry.path, entry.is_folder) for entry in entries)
    for entry in entries:
        with refusals.collect(entry.path):
            if not entry.is_folder and entry.path in conflicts:
                raise FileRefused(*conflicts[entry.path])
            entry.check()
            check_file_size(entry.size, caps)
            yield entry


class RefusalCollector:
    """Collects one refusal per path. Raises FileRefused for the whole push after `caps.files` refusals."""

    def __init__(self, caps: DiscoveryCaps) -> None:
        self.caps = caps
        self.by_path: dict[str, Refusal] = {}

    @contextmanager
    def collect(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileRefused as error:
            self.by_path.setdefault(path, Refusal(format_refusal_path(path), error.rule, error.reason))
            if len(self.by_path) > self.caps.files:
                message = f"More than {self.caps.files:,} files were rejected"
                raise FileRefused("files", f"{message}. The last error: {error.reason}") from error


def format_refusal_path(path: str) -> str:
    """Escape and shorten a path for display and storage.

    An empty path and "." become "(no name)", because "." in a refusal means the whole push.
    """
    if path in {"", ROOT_PATH}:
        return "(no name)"
    text = escape_path(path)
    return text if len(text) <= MAX_PATH_LENGTH else f"{text[: MAX_PATH_LENGTH - 1]}…"


def check_file_size(size: int, caps: DiscoveryCaps) -> None:
    if size > caps.file_bytes:
        raise FileRefused("size", f"The file is larger than {format_size(caps.file_bytes)}.")


def build_total_size_error(caps: DiscoveryCaps) -> FileRefused:
    message = f"The files have more than {format_size(caps.total_bytes)} in total"
    return FileRefused("total", f"{message}. Leave out files that no agent reads.")


def build_entry_count_error(caps: DiscoveryCaps) -> FileRefused:
    return FileRefused(
        "entries",
        (f"There are more than {caps.entries:,} files and folders. Leave out files that no agent reads."),
    )


DEFAULT_CAPS = DiscoveryCaps()


class InMemoryFile(NamedTuple):
    """A file whose content is in memory. For a file above the size cap, `data` is empty but `size` is set."""

    path: str
    size: int
    data: bytes
    is_folder: bool = False

    def check(self) -> None:
        """Do nothing: path and size are checked by the caller, and there is no other metadata."""

    def read_content(self) -> bytes:
        return self.data


def bundle_files(pairs: Iterable[tuple[str, bytes]], *, caps: DiscoveryCaps = DEFAULT_CAPS) -> FileBundle:
    """Validate files given as pairs of path and content.

    If all files together exceed a cap, the bundle has no files and one refusal with the path ".".
    """
    try:
        return build_bundle(collect_within_caps(pairs, caps), caps)
    except FileRefused as error:
        return FileBundle.from_error(error)


def collect_within_caps(pairs: Iterable[tuple[str, bytes]], caps: DiscoveryCaps) -> list[InMemoryFile]:
    """Collect the files in a list, or raise FileRefused as soon as their number or total size exceeds a cap.

    The content of a file above the size cap is not kept in memory.
    """
    files: list[InMemoryFile] = []
    total = 0
    for path, content in pairs:
        if len(files) == caps.entries:
            raise build_entry_count_error(caps)
        data = content if len(content) <= caps.file_bytes else b""
        files.append(InMemoryFile(path, len(content), data))
        total += len(data)
        if total > caps.total_bytes:
            raise build_total_size_error(caps)
    return files
