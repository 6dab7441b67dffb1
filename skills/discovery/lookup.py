"""The path patterns of a harness for a working directory, in order of precedence.

They are matched against files on disk and against the paths of stored files.
"""

import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from skills.discovery.harnesses import HOME_PREFIX, DiscoveryRule, FileKind, Harness


class PatternGroup(NamedTuple):
    """Patterns for one kind of file, relative to the source's root.

    With `is_first_only`, only the files of the first matching pattern are used, otherwise all.
    """

    kind: FileKind
    patterns: tuple[str, ...]
    is_first_only: bool


def join_path(*parts: str) -> str:
    return "/".join([part for part in parts if part])


def list_folder_chain(working_directory: str) -> list[str]:
    """List the folders from the root ("") down to the working directory."""
    names = [name for name in working_directory.split("/") if name]
    return ["/".join(names[:end]) for end in range(len(names) + 1)]


class SearchFolders(NamedTuple):
    """The folders of a search.

    `each` lists the folders from the root down to the working directory. `project` is the working directory,
    or None if it is too deep or cannot be entered.
    """

    each: list[str]
    project: str | None


def get_search_folders(working_directory: str, depth: int) -> SearchFolders:
    names = list_folder_chain(working_directory)
    return SearchFolders(names[: depth + 1], names[-1] if len(names) <= depth + 1 else None)


def iter_pattern_groups(harness: Harness, folders: SearchFolders) -> Iterator[PatternGroup]:
    """Yield one group of patterns for each rule and each folder that the rule applies to."""
    for rule in harness.active_rules:
        for folder in folders.each if rule.at == "each" else [folders.project]:
            paths = [path for path in rule.paths if folder is not None or is_fixed_path(path)]
            patterns = tuple([anchor_path(path, folder or "", harness) for path in paths])
            yield PatternGroup(rule.kind, patterns, rule.take == "first")


def is_fixed_path(path: str) -> bool:
    """Return whether the path does not depend on the working directory."""
    return path.startswith(("/", HOME_PREFIX))


def anchor_path(path: str, folder: str, harness: Harness) -> str:
    if path.startswith("/"):
        return path[1:]
    if path.startswith(HOME_PREFIX):
        return join_path(harness.global_folder, path.removeprefix(HOME_PREFIX))
    return join_path(folder, path)


def search_patterns(
    harness: Harness, folders: SearchFolders, find_matches: Callable[[FileKind, str], bool]
) -> None:
    """Call `find_matches` with each pattern, in order of precedence; it returns whether a file matches.

    A refused file counts as a match, so that no file of a later pattern replaces it.
    """
    for kind, patterns, is_first_only in iter_pattern_groups(harness, folders):
        for pattern in patterns:
            if find_matches(kind, pattern) and is_first_only:
                break


def list_applicable_files(
    harness: Harness, working_directory: str, paths: Collection[str]
) -> list[tuple[FileKind, str]]:
    """List kind and path of the stored files that an agent in this working directory reads.

    The order is that of the harness's rules.
    """
    chosen: dict[str, FileKind] = {}
    stored = paths if isinstance(paths, (set, frozenset, dict)) else frozenset(paths)

    def find_matches(kind: FileKind, pattern: str) -> bool:
        matches = list_matching_paths(pattern, stored)
        for path in matches:
            chosen.setdefault(path, kind)
        return bool(matches)

    search_patterns(harness, get_search_folders(working_directory, harness.caps.depth), find_matches)
    return [(kind, path) for path, kind in chosen.items()]


def list_matching_paths(pattern: str, paths: Collection[str]) -> list[str]:
    if "*" not in pattern:
        return [pattern] if pattern in paths else []
    is_match = compile_pattern(pattern).fullmatch
    return sorted([path for path in paths if is_match(path)])


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a glob pattern. A star does not match a slash, nor a leading dot, as in a shell."""
    return re.compile("/".join([build_name_regex(name) for name in pattern.split("/")]))


def build_name_regex(name: str) -> str:
    return (r"(?!\.)" if name.startswith("*") else "") + re.escape(name).replace(r"\*", "[^/]*")


def split_pattern(pattern: str) -> tuple[str, str, str]:
    """Split a pattern with one star: the folder above, the name with the star, and the path below."""
    head, _, tail = pattern.partition("*")
    above, _, prefix = head.rpartition("/")
    suffix, _, below = tail.partition("/")
    return above, f"{prefix}*{suffix}", below


def list_relative_patterns(harness: Harness) -> list[tuple[FileKind, str]]:
    """List the patterns that apply in every folder, since any folder can be a working directory."""
    return [(rule.kind, path) for rule, path in list_rule_paths(harness) if not is_fixed_path(path)]


def list_anchored_patterns(harness: Harness) -> list[tuple[FileKind, str]]:
    """List the patterns that apply at one fixed path of the source."""
    pairs = [(rule, path) for rule, path in list_rule_paths(harness) if is_fixed_path(path)]
    return [(rule.kind, anchor_path(path, "", harness)) for rule, path in pairs]


def list_rule_paths(harness: Harness) -> list[tuple[DiscoveryRule, str]]:
    return [(rule, path) for rule in harness.active_rules for path in rule.paths]
