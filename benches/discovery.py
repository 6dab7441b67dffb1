"""How quick a refresh is before anything is stored: cold, unchanged, and with one changed file."""

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
from skills.discovery import DiscoveredFile, DiscoveryResult, FileStamp, discover_tree
from skills.discovery.harnesses import OPAL, PI
from skills.files.evaluate import evaluate_file
from skills.skill_format.parser import parse_skill

ROUNDS = 15
HARNESSES = (OPAL, PI)
NAMES = [harness.name for harness in HARNESSES]
# What is known of a file that has changed since.
OTHER = FileStamp(1, 1, 1, "")
UNCHANGED_GOAL, COLD_GOAL, CHANGED_GOAL = 3.0, 4.0, 50.0


class Work(NamedTuple):
    name: str
    counted: str
    do: Callable[[], object]


def main() -> int:
    with TemporaryDirectory() as folder:
        make_source(Path(folder))
        works = works_on(folder, found_in(folder))
        # One round runs all, so that they meet the same machine.
        rounds = [[seconds(work.do, 1) * 1e3 for work in works] for _ in range(ROUNDS)]
    return verdict(works, [list(times) for times in zip(*rounds, strict=True)])


def found_in(folder: str) -> list[DiscoveredFile]:
    found = search(folder, {})
    if (len(found.files), len(found.skills), found.refusals) != (CONTEXT, SKILLS, ()):
        raise SystemExit("The discovery did not find what was put there.")
    return files_of(found)


def works_on(folder: str, found: list[DiscoveredFile]) -> tuple[Work, ...]:
    paths = [os.path.join(folder, file.path) for file in found]
    known = {file.path: file.stamp for file in found}
    other = {**known, found[-1].path: OTHER}
    looking, judging = "walk, guards, reading and SHA-256", "decoding, scanning, and parsing the skills"
    return (
        Work("bare walk", "os.scandir of every folder", partial(bare_walk, folder)),
        Work("plain reading", "open and read; of skills the head by CSafeLoader", partial(reading, paths)),
        Work("discovery", looking, partial(search, folder, {})),
        Work("judging", f"{judging}, of what discovery read", partial(judge, found)),
        Work("cold, parsed", f"{looking}; then our parser for the skills", partial(cold_parsed, folder)),
        Work("cold", f"{looking}; then {judging}", partial(cold, folder)),
        Work("unchanged", "walk and guards; all is known, nothing read", partial(search, folder, known)),
        Work("one changed", "the same, and one skill read and judged", partial(one_changed, folder, other)),
    )


# --- what is timed -------------------------------------------------------------------------------------


def bare_walk(path: str) -> int:
    """Nothing but listing: what no refresh can do without."""
    count = 0
    with os.scandir(path) as entries:
        for entry in entries:
            count += bare_walk(entry.path) if entry.is_dir(follow_symlinks=False) else 1
    return count


def reading(paths: list[str]) -> None:
    """The same files, without asking what they are or whether they may be used."""
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        if path.endswith("SKILL.md"):
            yaml.load(content.split(b"---\n", 2)[1], Loader=yaml.CSafeLoader)


def search(folder: str, known: Mapping[str, FileStamp]) -> DiscoveryResult:
    return discover_tree(folder, HARNESSES, known_stamps=known)


def judge(files: list[DiscoveredFile]) -> int:
    """Do with each file what a refresh does before it stores one; say how many had been read."""
    read = [(file.kind, file.path, file.content) for file in files if file.content is not None]
    if any(evaluate_file(*each, NAMES).verdict != "good" for each in read):
        raise SystemExit("A good file was found wanting.")
    return len(read)


def cold(folder: str) -> None:
    judge(files_of(search(folder, {})))


def cold_parsed(folder: str) -> None:
    """What plain reading and parsing do, with all our guards; a refresh scans besides."""
    for file in search(folder, {}).skills:
        if parse_skill(file.content or b"", folder_name=file.path.split("/")[-2]).skill is None:
            raise SystemExit("A good skill could not be read.")


def one_changed(folder: str, known: Mapping[str, FileStamp]) -> None:
    if judge(files_of(search(folder, known))) != 1:
        raise SystemExit("One file changed, but not one was read.")


def files_of(found: DiscoveryResult) -> list[DiscoveredFile]:
    return [*found.files, *found.skills]


# --- what is said --------------------------------------------------------------------------------------


def verdict(works: tuple[Work, ...], times: list[list[float]]) -> int:
    print(f"{FILES:,} files down to level {DEPTH}, among them {CONTEXT:,} context files and {SKILLS} skills.")
    print(f"Medians of {ROUNDS} rounds in ms. No database is in them.\n")
    for work, taken in zip(works, times, strict=True):
        print(f"{work.name:<14}{median(taken):7.1f}   {work.counted}")
    walk, plain, _, _, parsed, first, unchanged, changed = times
    more = median([one - none for one, none in zip(changed, unchanged, strict=True)])
    goals = (
        ("unchanged", ratio(unchanged, walk), UNCHANGED_GOAL, "× bare walk"),
        ("cold, read and parsed", ratio(parsed, plain), COLD_GOAL, "× plain reading and parsing"),
        ("one changed", more, CHANGED_GOAL, " ms over unchanged"),
    )
    said = [
        f"{what} {found:.2f}{of} (at most {goal:g}) {'met' if found <= goal else 'MISSED'}"
        for what, found, goal, of in goals
    ]
    print("\nGoals: " + "; ".join(said) + ".")
    print(
        f"A whole cold refresh, scanning included, is {ratio(first, plain):.2f}× plain reading and parsing."
    )
    return 0 if all(found <= goal for _, found, goal, _ in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
