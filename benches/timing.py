"""Timing that other work on the machine disturbs as little as possible."""

from collections.abc import Callable, Sequence
from statistics import quantiles
from time import perf_counter

Work = Callable[[], object]
# Long enough to be warm, short enough that all works of one round meet the same machine.
ROUND = 0.001


def typical(works: Sequence[Work], rounds: int) -> list[float]:
    """Microseconds a call of each takes, measured by turns.

    The lower quartile of the rounds counts: what else goes on can only add to the others.
    """
    counts = [calls_in(work, ROUND) for work in works]
    found: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, count, times in zip(works, counts, found, strict=True):
            times.append(seconds(work, count) / count)
    return [quantiles(times)[0] * 1e6 for times in found]


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
