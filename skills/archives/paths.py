"""Which paths a pushed file may have: below one folder, shown as they are, and the same file on any disk."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from unicodedata import normalize

from skills.discovery.filesystem import FileRefused

# As many as are stored, in characters; and as many as a disk would keep, in bytes.
MAX_PATH_LENGTH = 1_000
MAX_NAME_BYTES = 255
DRIVE_PATTERN = re.compile(r"[A-Za-z]:")

# In this order: what can be shown can also be encoded.
PATH_CHECKS: tuple[tuple[Callable[[str], object], str, str], ...] = (
    (lambda path: not path, "name", "It has no name."),
    (lambda path: not path.isprintable(), "name", "The name holds characters that cannot be shown."),
    (
        lambda path: len(path) > MAX_PATH_LENGTH or max(map(len, path.encode().split(b"/"))) > MAX_NAME_BYTES,
        "name",
        f"A path has at most {MAX_PATH_LENGTH:,} characters, and each name in it {MAX_NAME_BYTES} bytes.",
    ),
    (
        lambda path: path.startswith("/") or DRIVE_PATTERN.match(path),
        "outside",
        "The path starts at a disk's root; write it from the pushed folder down.",
    ),
    (lambda path: ".." in path.split("/"), "outside", "The path leads upwards with .. in it."),
    (lambda path: "\\" in path, "path", "Folders are parted by / and not by a backslash."),
    (
        lambda path: {"", "."} & set(path.split("/")),
        "path",
        "The path holds an empty name or a lone dot; write each name once, with / between.",
    ),
)
PATH_RULE_NAMES = frozenset([rule for _, rule, _ in PATH_CHECKS])


def check_path(path: str) -> None:
    """Refuse what could lead elsewhere, or could not be told apart by looking at it."""
    for is_faulty, rule, reason in PATH_CHECKS:
        if is_faulty(path):
            raise FileRefused(rule, reason)


def casefold_path(path: str) -> str:
    """Equal for names that some disk takes for one: case and composed letters do not count."""
    return normalize("NFD", normalize("NFD", path).casefold())


def find_path_conflicts(paths_and_types: Iterable[tuple[str, bool]]) -> dict[str, tuple[str, str]]:
    """Rule and reason for files that share a place; none is taken, for nobody can know which was meant."""
    files: dict[str, list[str]] = defaultdict(list)
    folders: set[str] = set()
    for path, is_folder in paths_and_types:
        key = f"{casefold_path(path)}/"
        folders.add(key) if is_folder else files[key].append(path)
    # Whatever lies below a path follows it at once, as its key ends in a slash.
    folders |= {above for above, below in pairwise(sorted({*files, *folders})) if below.startswith(above)}
    return {
        path: conflict
        for key, paths in files.items()
        if (conflict := describe_path_conflict(paths, key in folders))
        for path in paths
    }


def describe_path_conflict(paths: list[str], is_folder_too: bool) -> tuple[str, str] | None:
    if len(set(paths)) > 1:
        message = "The push holds names that differ only in case or in how a letter is written"
        return "alike", f"{message}; on many disks they are one file."
    if len(paths) > 1:
        return "twice", f"The push holds it {len(paths):,} times."
    return ("folder", "The push holds a folder of this name too.") if is_folder_too else None
