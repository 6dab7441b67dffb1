"""What a discovery hands back: files, skills, and what was refused with a reason a person can read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from skills.discovery.filesystem import FileStamp
from skills.discovery.harnesses import FileKind
from skills.discovery.lookup import list_folder_chain


class DiscoveredFile(NamedTuple):
    """A good file; content is None when its stamp was known, and so nothing was read."""

    path: str
    kind: FileKind
    stamp: FileStamp
    content: bytes | None
    # Where it really lies, if a link led there.
    target: str = ""


class Refusal(NamedTuple):
    """A file or folder that was left out; the path is safe to print and to store, "." is the whole source."""

    path: str
    rule: str
    reason: str


@dataclass(frozen=True)
class DiscoveryResult:
    """Files and skills in the order they count; seen are those that a rule named, read those opened."""

    files: tuple[DiscoveredFile, ...]
    skills: tuple[DiscoveredFile, ...]
    refusals: tuple[Refusal, ...]
    seen_count: int
    read_count: int
    # False when a cap, or a root or working directory that cannot be entered, ended it early.
    is_complete: bool

    def list_missing_paths(self, known_paths: Iterable[str]) -> list[str]:
        """Paths of an earlier run of the same search that surely are no more: not found, and not hidden."""
        if not self.is_complete:
            return []
        present = {file.path for file in (*self.files, *self.skills)}
        refused = {refusal.path for refusal in self.refusals}
        return sorted(
            [
                path
                for path in known_paths
                if path not in present and refused.isdisjoint(list_folder_chain(path))
            ]
        )


def escape_path(path: str) -> str:
    """What cannot be shown is escaped as in a Python text, so that no name breaks a line or a log."""
    return path if path.isprintable() else "".join([escape_character(character) for character in path])


def escape_character(character: str) -> str:
    if character.isprintable():
        return character
    # Bytes that are not UTF-8 reach Python as these.
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
