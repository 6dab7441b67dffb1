"""Timing that other work on the machine disturbs as little as possible."""

from collections.abc import Callable, Sequence
from statistics import median, quantiles
from time import perf_counter

Work = Callable[[], object]
# Long enough to be warm, short enough that all works of one round meet the same machine.
ROUND = 0.001
# As in a program that has run for a while, there is free room between things that stay; without it a call
# may happen to fetch memory from the system, and give it back, every single time.
ROOM = [bytes(64) for _ in range(100_000)][::1_000], [bytes(100_000) for _ in range(20)][::2]


def timed(works: Sequence[Work], rounds: int) -> list[list[float]]:
    """Microseconds a call of each takes, in every one of the rounds; in a round they take turns."""
    counts = [calls_in(work, ROUND) for work in works]
    found: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, count, times in zip(works, counts, found, strict=True):
            times.append(seconds(work, count) / count * 1e6)
    return found


def typical(times: list[float]) -> float:
    """The lower quartile: what else goes on can only add to the others."""
    return quantiles(times)[0]


def ratio(times: list[float], others: list[float]) -> float:
    """The median of the rounds' own ratios: a round that met a busy machine met it with both works."""
    return median([time / other for time, other in zip(times, others, strict=True)])


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
