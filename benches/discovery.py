"""How quick the pure part of a refresh is: cold, unchanged and with one changed file, beside bare walk and reading."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml

from benches.source import CONTEXT, DEPTH, FILES, SKILLS, make_source
from benches.timing import ratio, seconds
from skills.discovery import Found, FoundFile, Stamp, discover_tree
from skills.harnesses import OPAL, PI
from skills.judging import judged

ROUNDS = 15
HARNESSES = (OPAL, PI)
NAMES = [harness.name for harness in HARNESSES]
# What is known of a file that has changed since.
OTHER = Stamp(1, 1, 1, "")
UNCHANGED_GOAL, COLD_GOAL, CHANGED_GOAL = 3.0, 4.0, 50.0


class Work(NamedTuple):
    name: str
    counted: str
    do: Callable[[], object]


def main() -> int:
    with TemporaryDirectory() as folder:
        make_source(Path(folder))
        works = works_on(folder, checked(cold(folder)))
        rounds = [[seconds(work.do, 1) * 1e3 for work in works] for _ in range(ROUNDS)]
    return verdict(works, [list(times) for times in zip(*rounds, strict=True)])


def works_on(folder: str, found: list[FoundFile]) -> list[Work]:
    """One round runs all, so that they meet the same machine."""
    known = {file.path: file.stamp for file in found}
    paths = [os.path.join(folder, file.path) for file in found]
    changed = {**known, found[-1].path: OTHER}
    return [
        Work("bare walk", "os.scandir on every folder, nothing read", partial(bare_walk, folder)),
        Work("plain reading", "open and read; of a skill yaml.CSafeLoader on its head", partial(plain, paths)),
        Work("discovery", "discover_tree with nothing known: walk, guards, reading, SHA-256", partial(search, folder, {})),
        Work("cold", "the same, then decode, scan, parse and judge every file", partial(cold, folder)),
        Work("unchanged", "discover_tree with every file known: nothing read", partial(search, folder, known)),
        Work("one changed", "the same but for one file, which is read, scanned, parsed and judged", partial(one_changed, folder, changed)),
    ]  # fmt: skip


# --- the works -----------------------------------------------------------------------------------------


def bare_walk(path: str) -> int:
    """Nothing but listing: what no refresh can do without."""
    count = 0
    with os.scandir(path) as entries:
        for entry in entries:
            count += bare_walk(entry.path) if entry.is_dir(follow_symlinks=False) else 1
    return count


def plain(paths: list[str]) -> None:
    """The same files, without asking what they are or whether they may be used."""
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        if path.endswith("SKILL.md"):
            yaml.load(content.split(b"---\n", 2)[1], Loader=yaml.CSafeLoader)


def search(folder: str, known: Mapping[str, Stamp]) -> Found:
    return discover_tree(folder, HARNESSES, known=known)


def cold(folder: str) -> Found:
    found = search(folder, {})
    judge(found)
    return found


def one_changed(folder: str, known: Mapping[str, Stamp]) -> None:
    if judge(search(folder, known)) != 1:
        raise SystemExit("One file changed, but not one was read.")


def judge(found: Found) -> int:
    """Do with each file that was read what a refresh does before it stores it; say how many there were."""
    read = [file for file in (*found.files, *found.skills) if file.content is not None]
    for file in read:
        if judged(file.kind, file.path, file.content or b"", NAMES).verdict != "good":
            raise SystemExit(f"{file.path} was not found good.")
    return len(read)


# --- what to say ---------------------------------------------------------------------------------------


def checked(found: Found) -> list[FoundFile]:
    if (len(found.files), len(found.skills), found.refusals) != (CONTEXT, SKILLS, ()):
        raise SystemExit("The discovery did not find what was put there.")
    return [*found.files, *found.skills]


def verdict(works: list[Work], times: list[list[float]]) -> int:
    print(f"{FILES:,} files to {DEPTH} levels, {SKILLS} skills and {CONTEXT:,} context files among them.")
    print(f"Medians of {ROUNDS} rounds in ms; no database is in them.\n")
    for work, taken in zip(works, times, strict=True):
        print(f"{work.name:<14}{median(taken):7.1f}  {work.counted}")
    walk, reading, _, first, unchanged, changed = times
    more = median([one - none for one, none in zip(changed, unchanged, strict=True)])
    goals = (
        ("unchanged", ratio(unchanged, walk), UNCHANGED_GOAL, "× bare walk"),
        ("cold", ratio(first, reading), COLD_GOAL, "× plain reading"),
        ("one changed", more, CHANGED_GOAL, " ms over unchanged"),
    )
    said = [
        f"{what} {found:.2f}{of} (at most {goal:g}) {'met' if found <= goal else 'MISSED'}"
        for what, found, goal, of in goals
    ]
    print("\nGoals: " + "; ".join(said) + ".")
    return 0 if all(found <= goal for _, found, goal, _ in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
