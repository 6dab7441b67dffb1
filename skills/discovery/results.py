"""The result of a discovery: files, skills, and refusals with their reasons."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from skills.discovery.filesystem import FileStamp
from skills.discovery.harnesses import FileKind
from skills.discovery.lookup import list_folder_chain

# Refusal rule for a folder with more matching files than are read from one folder.
FOLDER_FILES_RULE = "folder-files"


class DiscoveredFile(NamedTuple):
    """An accepted file. `content` is None if the stamp is unchanged and the file was not read."""

    path: str
    kind: FileKind
    stamp: FileStamp
    content: bytes | None
    # The resolved path if the file was reached through a link, otherwise empty.
    target: str = ""


class Refusal(NamedTuple):
    """A file or folder that was left out. The path is escaped for display; "." means the whole source."""

    path: str
    rule: str
    reason: str


@dataclass(frozen=True)
class DiscoveryResult:
    """Files and skills in order of precedence, and how many files were matched (seen) and read."""

    files: tuple[DiscoveredFile, ...]
    skills: tuple[DiscoveredFile, ...]
    refusals: tuple[Refusal, ...]
    seen_count: int
    read_count: int
    # False if a cap, or a root or working directory that cannot be entered, stopped the search.
    is_complete: bool
    # Links that were not followed, with the reason. Unlike a refusal, a note does not affect known files.
    notes: tuple[Refusal, ...] = ()
    # Folders with so many names that only some were searched; "" for the root.
    cut_folders: tuple[str, ...] = ()
    # Whether the root has no names at all, like the mount point of a volume that is not mounted.
    is_empty: bool = False
    # Files that exist but were not read because of a limit, with the reason.
    skipped: tuple[Refusal, ...] = ()

    def list_missing_paths(self, known_paths: Iterable[str]) -> list[str]:
        """List known paths that no longer exist.

        Paths below a refused or cut folder may still exist and are not listed, nor are skipped files. After
        an incomplete search, no path is listed.
        """
        if not self.is_complete:
            return []
        present = {file.path for file in (*self.files, *self.skills)}
        present |= {refusal.path for refusal in self.skipped}
        # A folder with too many files does not count as refused, because all its names are known.
        refused = {refusal.path for refusal in self.refusals if refusal.rule != FOLDER_FILES_RULE}
        refused |= set(self.cut_folders)
        return sorted(
            [
                path
                for path in known_paths
                if path not in present and refused.isdisjoint(list_folder_chain(path))
            ]
        )


def escape_path(path: str) -> str:
    """Escape unprintable characters as in a Python string, so that a name cannot break a line or a log."""
    return path if path.isprintable() else "".join([escape_character(character) for character in path])


def escape_character(character: str) -> str:
    if character.isprintable():
        return character
    # Surrogate escapes: bytes of a file name that are not UTF-8.
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
