"""A circuit breaker: after several failures in a row, nothing is tried for a while."""

import time
from collections.abc import Callable
from threading import Lock

MAX_FAILURES, OPEN_SECONDS = 3, 10.0


class CircuitBreaker:
    """Allow no attempts for OPEN_SECONDS after MAX_FAILURES failures in a row."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.lock = Lock()
        self.failures, self.open_until = 0, 0.0

    @property
    def is_open(self) -> bool:
        return self.clock() < self.open_until

    def may_try(self) -> bool:
        """Return whether the caller may try.

        After OPEN_SECONDS only one caller may try, because each failed attempt takes a second. The others may
        try again when that attempt has succeeded.
        """
        with self.lock:
            if self.is_open:
                return False
            if self.failures >= MAX_FAILURES:
                self.open_until = self.clock() + OPEN_SECONDS
            return True

    def record_failure(self) -> None:
        """Count a failure, and open the breaker if there were MAX_FAILURES since the last success."""
        self.failures += 1
        if self.failures >= MAX_FAILURES:
            self.open_until = self.clock() + OPEN_SECONDS

    def record_success(self) -> None:
        self.failures, self.open_until = 0, 0.0
