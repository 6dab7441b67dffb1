"""Path validation for pushed files: relative, printable, and unambiguous on every file system."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from unicodedata import normalize

from skills.discovery.filesystem import FileRefused

# The length of the database column for paths, in characters.
MAX_PATH_LENGTH = 1_000
# The limit of common file systems for the name of one file or folder.
MAX_NAME_BYTES = 255
DRIVE_PATTERN = re.compile(r"[A-Za-z]:")

# Predicate (true for a bad path), rule and reason. The order matters: the length check encodes the path
# to UTF-8, which fails for surrogates, so the check for printable characters must refuse them first.
PATH_CHECKS: tuple[tuple[Callable[[str], object], str, str], ...] = (
    (lambda path: not path, "name", "The path is empty."),
    (lambda path: not path.isprintable(), "name", "The name contains unprintable characters."),
    (
        lambda path: len(path) > MAX_PATH_LENGTH or max(map(len, path.encode().split(b"/"))) > MAX_NAME_BYTES,
        "name",
        (
            f"A path can have at most {MAX_PATH_LENGTH:,} characters, and each name in it "
            f"{MAX_NAME_BYTES} bytes."
        ),
    ),
    (
        lambda path: path.startswith("/") or DRIVE_PATTERN.match(path),
        "outside",
        "The path is absolute. Use a path relative to the pushed folder.",
    ),
    (lambda path: ".." in path.split("/"), "outside", "The path contains “..”."),
    (lambda path: "\\" in path, "path", "Separate folders with /, not with a backslash."),
    (
        lambda path: {"", "."} & set(path.split("/")),
        "path",
        "The path contains an empty name or a single dot. Separate names with one /.",
    ),
)
PATH_RULE_NAMES = frozenset([rule for _, rule, _ in PATH_CHECKS])


def check_path(path: str) -> None:
    """Raise FileRefused for a path that is too long, ambiguous, or could lead out of the pushed folder."""
    for is_faulty, rule, reason in PATH_CHECKS:
        if is_faulty(path):
            raise FileRefused(rule, reason)


def casefold_path(path: str) -> str:
    """Return a key that is equal for paths that a case-insensitive or normalizing file system would merge."""
    return normalize("NFD", normalize("NFD", path).casefold())


def find_path_conflicts(paths_and_types: Iterable[tuple[str, bool]]) -> dict[str, tuple[str, str]]:
    """Return rule and reason of the refusal for each file whose path conflicts with another entry.

    Two paths conflict if they are equal, if they differ only in case or Unicode normalization, or if a
    file has the path of a folder. All conflicting files are refused, because it is unknown which one was
    intended.
    """
    files: dict[str, list[str]] = defaultdict(list)
    folders: set[str] = set()
    for path, is_folder in paths_and_types:
        key = f"{casefold_path(path)}/"
        folders.add(key) if is_folder else files[key].append(path)
    # Keys end in a slash, so in sorted order a path is directly followed by the paths below it.
    folders |= {above for above, below in pairwise(sorted({*files, *folders})) if below.startswith(above)}
    return {
        path: conflict
        for key, paths in files.items()
        if (conflict := describe_path_conflict(paths, key in folders))
        for path in paths
    }


def describe_path_conflict(paths: list[str], is_folder_too: bool) -> tuple[str, str] | None:
    if len(set(paths)) > 1:
        message = "The push contains names that differ only in case or in Unicode normalization"
        return "alike", f"{message}. On many disks they are the same file."
    if len(paths) > 1:
        return "twice", f"The push contains it {len(paths):,} times."
    return ("folder", "The push also contains a folder with this name.") if is_folder_too else None
