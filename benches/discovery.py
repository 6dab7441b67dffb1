"""How quick a refresh is: cold, unchanged and with one changed file, beside a bare walk and plain reading."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import yaml

from benches.source import CONTEXT, FILES, SKILLS, make_source
from skills.discovery import Found, Stamp, discover_tree
from skills.harnesses import OPAL, PI

ROUNDS = 15
HARNESSES = (OPAL, PI)
# What is known of a file that has changed since.
OTHER = Stamp(1, 1, 1, "")
UNCHANGED_GOAL, COLD_GOAL, CHANGED_GOAL = 3.0, 4.0, 0.050


def main() -> int:
    with TemporaryDirectory() as folder:
        make_source(Path(folder))
        first = discover_tree(folder, HARNESSES)
        found = [*first.files, *first.skills]
        if (len(first.files), len(first.skills), first.refusals) != (CONTEXT, SKILLS, ()):
            raise SystemExit("The discovery did not find what was put there.")
        known = {file.path: file.stamp for file in found}
        works = (
            partial(bare_walk, folder),
            partial(plain_reading, [os.path.join(folder, file.path) for file in found]),
            partial(cold, folder),
            partial(discover_tree, folder, HARNESSES, known=known),
            partial(one_changed, found[-1].path, folder, known),
        )
        return verdict(*by_turns(works))


def by_turns(works: Sequence[Callable[[], object]]) -> list[float]:
    """The median of each; one round runs all, so that they meet the same machine."""
    rounds = [[seconds(work) for work in works] for _ in range(ROUNDS)]
    return [median(times) for times in zip(*rounds, strict=True)]


def seconds(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def bare_walk(path: str) -> int:
    """Nothing but listing: what no refresh can do without."""
    count = 0
    with os.scandir(path) as entries:
        for entry in entries:
            count += bare_walk(entry.path) if entry.is_dir(follow_symlinks=False) else 1
    return count


def plain_reading(paths: list[str]) -> None:
    """The same files without asking what they are."""
    for path in paths:
        with open(path, "rb") as file:
            parsed(path, file.read())


def cold(folder: str) -> Found:
    found = discover_tree(folder, HARNESSES)
    for skill in found.skills:
        parsed(skill.path, skill.content or b"")
    return found


def parsed(path: str, content: bytes) -> object:
    """Heads only, with the C loader; it builds plain values, as SafeLoader does."""
    if not path.endswith("SKILL.md"):
        return None
    return yaml.load(content.split(b"---\n", 2)[1], Loader=yaml.CSafeLoader)


def one_changed(changed: str, folder: str, known: Mapping[str, Stamp]) -> None:
    if discover_tree(folder, HARNESSES, known={**known, changed: OTHER}).read != 1:
        raise SystemExit("One file changed, but not one was read.")


def verdict(walk: float, reading: float, first: float, unchanged: float, changed: float) -> int:
    print(f"{FILES:,} files, {SKILLS} skills, {CONTEXT:,} context files; medians of {ROUNDS} in ms")
    print(f"bare walk {walk * 1e3:.1f}   plain reading and parsing {reading * 1e3:.1f}")
    print(f"cold {first * 1e3:.1f}   unchanged {unchanged * 1e3:.1f}   one changed {changed * 1e3:.1f}")
    goals = (
        ("unchanged", unchanged / walk, UNCHANGED_GOAL, "× bare walk"),
        ("cold", first / reading, COLD_GOAL, "× plain reading"),
        ("one changed", (changed - unchanged) * 1e3, CHANGED_GOAL * 1e3, " ms over unchanged"),
    )
    said = [
        f"{what} {found:.2f}{of} of {goal:g} {'met' if found <= goal else 'MISSED'}"
        for what, found, goal, of in goals
    ]
    print("Goals: " + "; ".join(said) + ".")
    return 0 if all(found <= goal for _, found, goal, _ in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
