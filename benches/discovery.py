"""Benchmark of a refresh before anything is stored: cold, unchanged, and with one changed file."""

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
from benches.timing import get_median_ratio, measure_seconds
from skills.discovery import DiscoveredFile, DiscoveryResult, FileStamp, discover_tree
from skills.discovery.harnesses import OPAL, PI
from skills.files.evaluate import evaluate_file
from skills.skill_format.parser import parse_skill

ROUNDS = 15
HARNESSES = (OPAL, PI)
NAMES = [harness.name for harness in HARNESSES]
# The stored stamp of a file that has changed since.
OUTDATED = FileStamp(1, 1, 1, 1, "")
UNCHANGED_GOAL, COLD_GOAL, CHANGED_GOAL = 3.0, 4.0, 50.0


class Workload(NamedTuple):
    name: str
    description: str
    function: Callable[[], object]


def main() -> int:
    with TemporaryDirectory() as folder:
        make_source(Path(folder))
        workloads = build_workloads(folder, discover_files(folder))
        # Each round runs all workloads, so that they see the same load on the machine.
        rounds = [
            [measure_seconds(workload.function, 1) * 1e3 for workload in workloads] for _ in range(ROUNDS)
        ]
    return check_goals(workloads, [list(times) for times in zip(*rounds, strict=True)])


def discover_files(folder: str) -> list[DiscoveredFile]:
    result = discover(folder, {})
    if (len(result.files), len(result.skills), result.refusals) != (CONTEXT, SKILLS, ()):
        raise SystemExit("The discovery did not find what was put there.")
    return list_files(result)


def build_workloads(folder: str, files: list[DiscoveredFile]) -> tuple[Workload, ...]:
    paths = [os.path.join(folder, file.path) for file in files]
    known = {file.path: file.stamp for file in files}
    known_but_one = {**known, files[-1].path: OUTDATED}
    discovery_steps, evaluation_steps = (
        "walk, guards, reading and SHA-256",
        "decoding, scanning, and parsing the skills",
    )
    return (
        Workload("bare walk", "os.scandir of every folder", partial(list_folders, folder)),
        Workload(
            "plain reading", "open and read; of skills the head by CSafeLoader", partial(read_plainly, paths)
        ),
        Workload("discovery", discovery_steps, partial(discover, folder, {})),
        Workload("judging", f"{evaluation_steps}, of what discovery read", partial(evaluate_files, files)),
        Workload(
            "cold, parsed",
            f"{discovery_steps}; then our parser for the skills",
            partial(discover_and_parse, folder),
        ),
        Workload("cold", f"{discovery_steps}; then {evaluation_steps}", partial(refresh_cold, folder)),
        Workload(
            "unchanged", "walk and guards; all is known, nothing read", partial(discover, folder, known)
        ),
        Workload(
            "one changed",
            "the same, and one skill read and judged",
            partial(refresh_one_changed, folder, known_but_one),
        ),
    )


# --- workloads -----------------------------------------------------------------------------------------


def list_folders(path: str) -> int:
    """List every folder, the minimum that a refresh must do."""
    count = 0
    with os.scandir(path) as entries:
        for entry in entries:
            count += list_folders(entry.path) if entry.is_dir(follow_symlinks=False) else 1
    return count


def read_plainly(paths: list[str]) -> None:
    """Read the same files without any checks."""
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        if path.endswith("SKILL.md"):
            yaml.load(content.split(b"---\n", 2)[1], Loader=yaml.CSafeLoader)


def discover(folder: str, known: Mapping[str, FileStamp]) -> DiscoveryResult:
    return discover_tree(folder, HARNESSES, known_stamps=known)


def evaluate_files(files: list[DiscoveredFile]) -> int:
    """Evaluate each file as a refresh does before storing it; return how many had been read."""
    read = [(file.kind, file.path, file.content) for file in files if file.content is not None]
    if any(evaluate_file(*file, NAMES).verdict != "good" for file in read):
        raise SystemExit("A good file was found wanting.")
    return len(read)


def refresh_cold(folder: str) -> None:
    evaluate_files(list_files(discover(folder, {})))


def discover_and_parse(folder: str) -> None:
    """Discover and parse with all checks but without scanning, to compare with plain reading and parsing."""
    for file in discover(folder, {}).skills:
        if parse_skill(file.content or b"", folder_name=file.path.split("/")[-2]).skill is None:
            raise SystemExit("A good skill could not be read.")


def refresh_one_changed(folder: str, known: Mapping[str, FileStamp]) -> None:
    if evaluate_files(list_files(discover(folder, known))) != 1:
        raise SystemExit("One file changed, but not one was read.")


def list_files(result: DiscoveryResult) -> list[DiscoveredFile]:
    return [*result.files, *result.skills]


# --- results -------------------------------------------------------------------------------------------


def check_goals(workloads: tuple[Workload, ...], times: list[list[float]]) -> int:
    print(f"{FILES:,} files down to level {DEPTH}, among them {CONTEXT:,} context files and {SKILLS} skills.")
    print(f"Medians of {ROUNDS} rounds in ms. No database is in them.\n")
    for workload, taken in zip(workloads, times, strict=True):
        print(f"{workload.name:<14}{median(taken):7.1f}   {workload.description}")
    walk, plain, _, _, parsed, first, unchanged, changed = times
    extra = median([with_change - without for with_change, without in zip(changed, unchanged, strict=True)])
    goals = (
        ("unchanged", get_median_ratio(unchanged, walk), UNCHANGED_GOAL, "× bare walk"),
        ("cold, read and parsed", get_median_ratio(parsed, plain), COLD_GOAL, "× plain reading and parsing"),
        ("one changed", extra, CHANGED_GOAL, " ms over unchanged"),
    )
    results = [
        f"{name} {value:.2f}{unit} (at most {goal:g}) {'met' if value <= goal else 'MISSED'}"
        for name, value, goal, unit in goals
    ]
    print("\nGoals: " + "; ".join(results) + ".")
    print(
        f"A whole cold refresh, scanning included, is {get_median_ratio(first, plain):.2f}"
        "× plain reading and parsing."
    )
    return 0 if all(value <= goal for _, value, goal, _ in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
