"""Enqueue Celery jobs behind a circuit breaker: a broker outage delays a page by a second at most.

It never causes an error.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import structlog
from django.db import transaction
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

MAX_FAILURES, OPEN_SECONDS = 3, 10.0


class CircuitBreaker:
    """Circuit breaker: after MAX_FAILURES failures in a row, do not try for OPEN_SECONDS.

    Jobs that are not enqueued meanwhile are found in the database by the periodic sweep.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.lock = Lock()
        self.failures, self.open_until = 0, 0.0

    @property
    def is_open(self) -> bool:
        return self.clock() < self.open_until

    def may_try(self) -> bool:
        """Return whether to try. After the pause only one caller tries, because a failure takes a second."""
        with self.lock:
            if self.is_open:
                return False
            if self.failures >= MAX_FAILURES:
                self.open_until = self.clock() + OPEN_SECONDS
            return True

    def record_failure(self) -> None:
        """Count a failure; after a pause, the first one opens the breaker again."""
        self.failures += 1
        if self.failures >= MAX_FAILURES:
            self.open_until = self.clock() + OPEN_SECONDS

    def record_success(self) -> None:
        self.failures, self.open_until = 0, 0.0


breaker = CircuitBreaker()


def enqueue_job(job: Any, *args: Any) -> bool:
    """Enqueue a job and return whether the broker accepted it.

    If not, nothing is lost: the work is recorded in the database, where the sweep finds it.
    """
    if not breaker.may_try():
        return False
    try:
        job.delay(*args)
    except (OperationalError, OSError) as error:
        breaker.record_failure()
        log.warning("job_enqueue_failed", job=job.name, error=str(error))
        return False
    breaker.record_success()
    return True


def enqueue_after_commit(job: Any, *args: Any, then: Callable[[], object] | None = None) -> None:
    """Enqueue a job after the commit, when the worker can see the rows; `then` runs if it was enqueued."""

    def enqueue() -> None:
        if enqueue_job(job, *args) and then:
            then()

    # Robust: the data is committed, so an error here must not fail the request. Django logs it.
    transaction.on_commit(enqueue, robust=True)
