"""Timing helpers that are robust against other load on the machine."""

from collections.abc import Callable, Sequence
from statistics import median, quantiles
from time import perf_counter

Workload = Callable[[], object]
# Seconds per workload: long enough to warm up, short enough that all workloads of a round see the same load.
ROUND_SECONDS = 0.001
# Fragment the heap as in a long-running program; otherwise a call may allocate memory from the operating
# system and release it every time.
FRAGMENTED_HEAP = [bytes(64) for _ in range(100_000)][::1_000], [bytes(100_000) for _ in range(20)][::2]


def time_rounds(workloads: Sequence[Workload], rounds: int) -> list[list[float]]:
    """Return the microseconds per call of each workload, one value per round; workloads take turns."""
    counts = [count_calls(workload, ROUND_SECONDS) for workload in workloads]
    all_times: list[list[float]] = [[] for _ in workloads]
    for _ in range(rounds):
        for workload, count, times in zip(workloads, counts, all_times, strict=True):
            times.append(measure_seconds(workload, count) / count * 1e6)
    return all_times


def get_lower_quartile(times: list[float]) -> float:
    """Return the lower quartile: other load on the machine can only make calls slower."""
    return quantiles(times)[0]


def get_median_ratio(times: list[float], other_times: list[float]) -> float:
    """Return the median of the ratios of each round: in a round both workloads see the same load."""
    return median([time / other_time for time, other_time in zip(times, other_times, strict=True)])


def measure_seconds(workload: Workload, count: int) -> float:
    started_at = perf_counter()
    for _ in range(count):
        workload()
    return perf_counter() - started_at


def count_calls(workload: Workload, seconds: float) -> int:
    """Return how many calls fit into this time; the trial calls warm up the workload."""
    count = 1
    while (taken := measure_seconds(workload, count)) < seconds / 2:
        count *= 2
    return max(1, int(count * seconds / taken))
