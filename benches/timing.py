"""Timing that other work on the machine disturbs as little as possible."""

from collections.abc import Callable, Sequence
from time import perf_counter

Work = Callable[[], object]
# Long enough for the clock, short enough that the works of one round meet the same machine.
ROUND = 0.0005


def best(works: Sequence[Work], rounds: int) -> list[float]:
    """Microseconds a call of each, measured by turns; the quickest round counts, for noise only ever adds."""
    counts = [calls_in(work, ROUND) for work in works]
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        for place, (work, count) in enumerate(zip(works, counts, strict=True)):
            found[place] = min(found[place], seconds(work, count) / count)
    return [each * 1e6 for each in found]


def seconds(work: Work, count: int) -> float:
    began = perf_counter()
    for _ in range(count):
        work()
    return perf_counter() - began


def calls_in(work: Work, time: float) -> int:
    """How often the work fits into this time; the tries warm it up as well."""
    count = 1
    while (taken := seconds(work, count)) < time / 2:
        count *= 2
    return max(1, int(count * time / taken))
