"""Processor time of a piece of work, for tests that limit it."""

import time
from collections.abc import Callable

ATTEMPTS = 5


def measure_seconds(work: Callable[[], object], limit: float) -> float:
    """Return the processor time of this thread, and measure again while it is above the limit.

    Other work on the machine slows down some of the attempts, a wrong algorithm all of them.
    """
    for _ in range(ATTEMPTS):
        began = time.thread_time()
        work()
        seconds = time.thread_time() - began
        if seconds < limit:
            break
    return seconds
