"""Find the context files of a local project, within size limits.

Symbolic links are not followed. Every file that is left out is listed with the reason.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dramatis_client.context_names import is_context_file, is_searched_folder
from dramatis_client.requests import encode_json

MAX_FILES = 200
MAX_BYTES = 1_000_000
MAX_ENTRIES = 100_000
MAX_DEPTH = 20


class PushTooLarge(Exception):
    """The files exceed the limits of one push; nothing was pushed."""


@dataclass(frozen=True)
class ContextFiles:
    """Texts by path, and the reason for each path that was skipped."""

    files: dict[str, str]
    skipped: dict[str, str]

    @property
    def is_complete(self) -> bool:
        """Whether nothing was skipped; only then may a push remove the source's other files."""
        return not self.skipped


class ContextFileSearch:
    """Search of one folder and its subfolders."""

    def __init__(self, root: Path, *, with_personal: bool = False) -> None:
        self.root, self.with_personal = root, with_personal
        self.files: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.entries = self.bytes = 0

    def run(self) -> ContextFiles:
        if not self.root.is_dir():
            raise NotADirectoryError(f"{self.root} is not a folder.")
        self.scan_folder(self.root, "", 0)
        return ContextFiles(self.files, self.skipped)

    def scan_folder(self, folder: Path, prefix: str, depth: int) -> None:
        """Add files before subfolders, sorted by name, so that the same project gives the same list."""
        subfolders: list[os.DirEntry[str]] = []
        for entry in self.list_entries(folder, prefix):
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                subfolders.append(entry)
            elif is_context_file(path, with_personal=self.with_personal):
                self.add_file(path, Path(entry.path))
            elif entry.is_symlink() and entry.is_dir() and is_searched_folder(entry.name):
                self.skipped[path] = "This is a link to a folder. Links are not followed."
        for entry in subfolders:
            path = prefix + entry.name
            if is_searched_folder(entry.name) and depth < MAX_DEPTH:
                self.scan_folder(Path(entry.path), f"{path}/", depth + 1)

    def list_entries(self, folder: Path, prefix: str) -> Iterator["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as entries:
                sorted_entries = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.skipped[prefix or "."] = f"Cannot be read: {error.strerror}."
            return
        self.entries += len(sorted_entries)
        if self.entries > MAX_ENTRIES:
            raise PushTooLarge(
                f"There are more than {MAX_ENTRIES:,} files and folders. Choose a smaller folder."
            )
        yield from sorted_entries

    def add_file(self, path: str, absolute_path: Path) -> None:
        try:
            text = read_text(absolute_path)
        except OSError as error:
            self.skipped[path] = f"Cannot be read: {error.strerror}."
            return
        except ValueError as error:
            self.skipped[path] = str(error)
            return
        self.files[path] = text
        # Count bytes as JSON, where quotes and line ends take two bytes.
        self.bytes += len(encode_json({"path": path, "text": text})) + 1
        if len(self.files) > MAX_FILES:
            raise PushTooLarge(f"There are more than {MAX_FILES} context files. Choose a smaller folder.")
        if self.bytes > MAX_BYTES:
            raise PushTooLarge(
                f"The context files have more than {MAX_BYTES:,} bytes. Choose a smaller folder."
            )


def read_text(path: Path) -> str:
    """Read a regular file. The type is checked on the open file, so the file cannot be swapped in between."""
    if path.is_symlink():
        raise ValueError("This is a link. Links are not followed.")
    # O_NONBLOCK: opening a named pipe without a writer would block.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("Not a regular file.")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"More than {MAX_BYTES:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("Not valid UTF-8.") from None


def find_context_files(folder: str | Path, *, with_personal: bool = False) -> ContextFiles:
    """Find all files of a project that agents could read; raise PushTooLarge instead of returning a part."""
    return ContextFileSearch(Path(folder), with_personal=with_personal).run()
