"""Hands jobs to the workers; a broker that is down or frozen costs a page a second, never an error."""

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
    """After a few failures in a row, stop trying for a while: the sweep finds the work in the database."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.guard = Lock()
        self.failures, self.open_until = 0, 0.0

    @property
    def is_open(self) -> bool:
        return self.clock() < self.open_until

    def may_try(self) -> bool:
        """After the pause one goes first, and the others wait for what it finds: each would lose a second."""
        with self.guard:
            if self.is_open:
                return False
            if self.failures >= MAX_FAILURES:
                self.open_until = self.clock() + OPEN_SECONDS
            return True

    def failed(self) -> None:
        """Once it was open, the first failure after the pause opens it again."""
        self.failures += 1
        if self.failures >= MAX_FAILURES:
            self.open_until = self.clock() + OPEN_SECONDS

    def worked(self) -> None:
        self.failures, self.open_until = 0, 0.0


breaker = CircuitBreaker()


def enqueue_job(job: Any, *args: Any) -> bool:
    """Hand over now; whether the broker took it. Rows say what is to be done, so nothing is lost if not."""
    if not breaker.may_try():
        return False
    try:
        job.delay(*args)
    except (OperationalError, OSError) as error:
        breaker.failed()
        log.warning("job_enqueue_failed", job=job.name, error=str(error))
        return False
    breaker.worked()
    return True


def enqueue_after_commit(job: Any, *args: Any, then: Callable[[], object] | None = None) -> None:
    """Hand over once the rows the job will read are there for all to see."""

    def hand_over() -> None:
        if enqueue_job(job, *args) and then:
            then()

    # Robust: what was saved is saved, and a page must not say otherwise. Django logs the error.
    transaction.on_commit(hand_over, robust=True)
