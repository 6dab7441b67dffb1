"""A local project's context files, found within bounds; no link is followed, nothing left out unsaid."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dramatis_client.context_names import is_context, is_entered
from dramatis_client.requests import written

MOST_FILES = 200
MOST_BYTES = 1_000_000
MOST_ENTRIES = 100_000
DEEPEST = 20


class TooMuch(Exception):
    """More than one push may hold; nothing was pushed."""


@dataclass(frozen=True)
class Found:
    """Texts by path, and what was left out with the reason."""

    files: dict[str, str]
    skipped: dict[str, str]

    @property
    def is_complete(self) -> bool:
        """Only then may a push let go of what it does not name."""
        return not self.skipped


class Search:
    """One look at a folder."""

    def __init__(self, root: Path, *, with_personal: bool = False) -> None:
        self.root, self.with_personal = root, with_personal
        self.files: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.entries = self.bytes = 0

    def found(self) -> Found:
        if not self.root.is_dir():
            raise NotADirectoryError(f"{self.root} is no folder.")
        self.look_into(self.root, "", 0)
        return Found(self.files, self.skipped)

    def look_into(self, folder: Path, prefix: str, depth: int) -> None:
        """Files of a folder before the folders in it, by name: the same project gives the same list."""
        folders: list[os.DirEntry[str]] = []
        for entry in self.entries_of(folder, prefix):
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry)
            elif is_context(path, with_personal=self.with_personal):
                self.take(path, Path(entry.path))
            elif entry.is_symlink() and entry.is_dir() and is_entered(entry.name):
                self.skipped[path] = "It is a link to a folder, and links are not followed."
        for entry in folders:
            path = prefix + entry.name
            if is_entered(entry.name) and depth < DEEPEST:
                self.look_into(Path(entry.path), f"{path}/", depth + 1)

    def entries_of(self, folder: Path, prefix: str) -> Iterator["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.skipped[prefix or "."] = f"It cannot be read: {error.strerror}."
            return
        self.entries += len(listed)
        if self.entries > MOST_ENTRIES:
            raise TooMuch(f"There are more than {MOST_ENTRIES:,} files and folders; name a smaller folder.")
        yield from listed

    def take(self, path: str, place: Path) -> None:
        try:
            text = text_of(place)
        except OSError as error:
            self.skipped[path] = f"It cannot be read: {error.strerror}."
            return
        except ValueError as error:
            self.skipped[path] = str(error)
            return
        self.files[path] = text
        # As it travels: quotes and ends of lines take two bytes in JSON.
        self.bytes += len(written({"path": path, "text": text})) + 1
        if len(self.files) > MOST_FILES:
            raise TooMuch(f"There are more than {MOST_FILES} context files; name a smaller folder.")
        if self.bytes > MOST_BYTES:
            raise TooMuch(f"The context files have more than {MOST_BYTES:,} bytes; name a smaller folder.")


def text_of(path: Path) -> str:
    """The words of a regular file; the very file that is read was looked at."""
    if path.is_symlink():
        raise ValueError("It is a link, and links are not followed.")
    # A pipe without a writer would never answer.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("It is no regular file.")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"It has more than {MOST_BYTES:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("It is not UTF-8.") from None


def find_context_files(folder: str | Path, *, with_personal: bool = False) -> Found:
    """All that agents could read in a project; raises TooMuch rather than to push a part of it."""
    return Search(Path(folder), with_personal=with_personal).found()
