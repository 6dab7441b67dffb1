"""Enqueue Celery jobs behind a circuit breaker.

A broker outage delays a page by a second at most and never causes an error.
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
    """Circuit breaker: after MAX_FAILURES failures in a row, enqueue nothing for OPEN_SECONDS.

    The work of jobs that were not enqueued is recorded in the database, where the periodic sweep finds it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.lock = Lock()
        self.failures, self.open_until = 0, 0.0

    @property
    def is_open(self) -> bool:
        return self.clock() < self.open_until

    def may_try(self) -> bool:
        """Return whether the caller may try to enqueue.

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


breaker = CircuitBreaker()


def enqueue_job(job: Any, *args: Any) -> bool:
    """Enqueue a job and return whether the broker accepted it.

    If it did not, no work is lost: the work is recorded in the database, where the periodic sweep finds it.
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
    """Enqueue a job after the current transaction, so that the worker can see the committed rows.

    `then` is called if the job was enqueued.
    """

    def enqueue() -> None:
        if enqueue_job(job, *args) and then:
            then()

    # With `robust`, Django logs an error of `enqueue` and does not raise it: the data is committed already,
    # so the request must not fail.
    transaction.on_commit(enqueue, robust=True)
