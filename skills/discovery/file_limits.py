"""Select the files of a source to read if there are more than the limits allow: no folder starves others.

One folder gives at most `folder_files` files. If there are still more than `files` in total, the folders
share this number from the root down: in each folder, its own files and each of its subfolders get equal
shares, and what one does not need goes to the others. Within a folder, files that are known come first, then
the order of names decides.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from skills.discovery.filesystem import FileRefused
from skills.discovery.harnesses import DiscoveryCaps, FileKind
from skills.discovery.results import FOLDER_FILES_RULE, Refusal, escape_path

TOTAL_FILES_RULE = "files"
MAX_FOLDERS_NAMED = 3


@dataclass
class FileSelection:
    """The paths to read, the skipped ones with the reason, and the folders that have too many files.

    `total_error` says which folders were cut because the source as a whole has too many files.
    """

    chosen: set[str]
    skipped: dict[str, Refusal] = field(default_factory=dict)
    folder_errors: dict[str, FileRefused] = field(default_factory=dict)
    total_error: FileRefused | None = None

    def skip(self, path: str, error: FileRefused) -> None:
        self.skipped[path] = Refusal(escape_path(path), error.rule, error.reason)


class FolderNode:
    """A folder with the files that rules find in it, in order of preference, and its subfolders."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.children: dict[str, FolderNode] = {}
        self.size = 0

    def add(self, folder: str, files: list[str]) -> None:
        node = self
        node.size += len(files)
        for name in folder.split("/") if folder else ():
            node = node.children.setdefault(name, FolderNode())
            node.size += len(files)
        node.files = files

    def choose(self, most: int) -> Iterable[str]:
        """Yield at most this many files, in equal shares of the own files and of each subfolder."""
        if self.size <= most:
            yield from self.list_all()
            return
        own = FolderNode()
        own.add("", self.files)
        parts = [own, *[child for _name, child in sorted(self.children.items())]]
        # Smallest first: what a small part does not need of its share is left for the larger parts.
        parts.sort(key=lambda part: part.size)
        for index, part in enumerate(parts):
            share = min(part.size, -(-most // (len(parts) - index)))
            most -= share
            yield from part.files[:share] if part is own else part.choose(share)

    def list_all(self) -> Iterable[str]:
        yield from self.files
        for child in self.children.values():
            yield from child.list_all()


def get_limited_folder(kind: FileKind, path: str) -> str:
    """Return the folder whose limit counts a file. A skill counts in the folder that contains its own."""
    folder = path.rpartition("/")[0]
    return folder.rpartition("/")[0] if kind == "skill" else folder


def select_files(
    found: Mapping[str, FileKind], known_paths: Collection[str], caps: DiscoveryCaps
) -> FileSelection:
    """Choose from all files that rules find, by path."""
    folders: dict[str, list[str]] = {}
    for path, kind in found.items():
        folders.setdefault(get_limited_folder(kind, path), []).append(path)
    selection, root = FileSelection(set()), FolderNode()
    for folder in sorted(folders):
        paths = sorted(folders[folder], key=lambda path: (path not in known_paths, path))
        if len(paths) > caps.folder_files:
            error = build_folder_error(len(paths), caps.folder_files)
            selection.folder_errors[folder] = error
            for path in paths[caps.folder_files :]:
                selection.skip(path, error)
        root.add(folder, paths[: caps.folder_files])
    selection.chosen = set(root.choose(caps.files))
    if root.size > caps.files:
        skip_other_files(selection, folders, len(found), caps)
    return selection


def skip_other_files(
    selection: FileSelection, folders: Mapping[str, list[str]], found: int, caps: DiscoveryCaps
) -> None:
    cut = {
        folder: [path for path in paths if path not in selection.chosen] for folder, paths in folders.items()
    }
    largest = sorted(cut, key=lambda folder: (-len(cut[folder]), folder))[:MAX_FOLDERS_NAMED]
    named = ", ".join(
        [f"{len(cut[folder]):,} in {escape_path(folder) or 'the root'}" for folder in largest if cut[folder]]
    )
    error = FileRefused(
        TOTAL_FILES_RULE,
        f"There are {found:,} files, and at most {caps.files:,} are read. Each folder got an equal share. "
        f"{found - len(selection.chosen):,} files were skipped: {named}"
        f"{' and other folders' if sum(map(bool, cut.values())) > MAX_FOLDERS_NAMED else ''}.",
    )
    selection.total_error = error
    for path in [path for paths in cut.values() for path in paths if path not in selection.skipped]:
        selection.skip(path, error)


def build_folder_error(count: int, most: int) -> FileRefused:
    return FileRefused(
        FOLDER_FILES_RULE,
        f"The folder has {count:,} files that rules find, and at most {most:,} of one folder are read. "
        f"{count - most:,} were skipped. Known files come first, then the order of names decides.",
    )
