"""What a harness looks for from a working directory, in order; the same for a disk and for stored paths."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from skills.discovery.harnesses import HOME, Harness, Kind, Rule


class Group(NamedTuple):
    """Patterns below the source's root of which all count, or only the first that is there."""

    kind: Kind
    patterns: tuple[str, ...]
    is_first_only: bool


def joined(*parts: str) -> str:
    return "/".join([part for part in parts if part])


def chain(working_directory: str) -> list[str]:
    """The folders from the root, which is "", down to the working directory: outermost first."""
    names = [name for name in working_directory.split("/") if name]
    return ["/".join(names[:end]) for end in range(len(names) + 1)]


class Folders(NamedTuple):
    """Where to look: the chain, and the working directory itself unless it cannot be entered."""

    each: list[str]
    project: str | None


def folders(working_directory: str, depth: int) -> Folders:
    names = chain(working_directory)
    return Folders(names[: depth + 1], names[-1] if len(names) <= depth + 1 else None)


def groups(harness: Harness, where: Folders) -> Iterator[Group]:
    """Rule by rule, and within one folder by folder."""
    for rule in harness.live_rules:
        for folder in where.each if rule.at == "each" else [where.project]:
            paths = [path for path in rule.paths if folder is not None or is_fixed(path)]
            patterns = tuple([anchored(path, folder or "", harness) for path in paths])
            yield Group(rule.kind, patterns, rule.take == "first")


def is_fixed(path: str) -> bool:
    """Whether the path means the same place whatever the working directory."""
    return path.startswith(("/", HOME))


def anchored(path: str, folder: str, harness: Harness) -> str:
    if path.startswith("/"):
        return path[1:]
    if path.startswith(HOME):
        return joined(harness.global_folder, path.removeprefix(HOME))
    return joined(folder, path)


def search(harness: Harness, where: Folders, is_there: Callable[[Kind, str], bool]) -> None:
    """Ask for each pattern in turn; what is there but refused still keeps its place from the next."""
    for kind, patterns, is_first_only in groups(harness, where):
        for pattern in patterns:
            if is_there(kind, pattern) and is_first_only:
                break


def applicable(harness: Harness, working_directory: str, paths: Collection[str]) -> list[tuple[Kind, str]]:
    """Which of the stored paths an agent in this folder is given, and as what, in order."""
    chosen: dict[str, Kind] = {}
    stored = paths if isinstance(paths, (set, frozenset, dict)) else frozenset(paths)

    def is_there(kind: Kind, pattern: str) -> bool:
        hits = matching(pattern, stored)
        for path in hits:
            chosen.setdefault(path, kind)
        return bool(hits)

    search(harness, folders(working_directory, harness.caps.depth), is_there)
    return [(kind, path) for path, kind in chosen.items()]


def matching(pattern: str, paths: Collection[str]) -> list[str]:
    if "*" not in pattern:
        return [pattern] if pattern in paths else []
    fits = shape(pattern).fullmatch
    return sorted([path for path in paths if fits(path)])


@lru_cache(maxsize=1024)
def shape(pattern: str) -> re.Pattern[str]:
    """A star stays within one name, and at its beginning matches no dot, as in a shell."""
    return re.compile("/".join([name_shape(name) for name in pattern.split("/")]))


def name_shape(name: str) -> str:
    return (r"(?!\.)" if name.startswith("*") else "") + re.escape(name).replace(r"\*", "[^/]*")


def split(pattern: str) -> tuple[str, str, str]:
    """The folder above the name with the star, that name, and what follows below it."""
    head, _, tail = pattern.partition("*")
    above, _, begin = head.rpartition("/")
    end, _, below = tail.partition("/")
    return above, f"{begin}*{end}", below


def patterns_anywhere(harness: Harness) -> list[tuple[Kind, str]]:
    """What counts in any folder of a source, since any may become a working directory."""
    return [(rule.kind, path) for rule, path in rule_paths(harness) if not is_fixed(path)]


def patterns_anchored(harness: Harness) -> list[tuple[Kind, str]]:
    """What counts in one place of the source only."""
    pairs = [(rule, path) for rule, path in rule_paths(harness) if is_fixed(path)]
    return [(rule.kind, anchored(path, "", harness)) for rule, path in pairs]


def rule_paths(harness: Harness) -> list[tuple[Rule, str]]:
    return [(rule, path) for rule in harness.live_rules for path in rule.paths]
