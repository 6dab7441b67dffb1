"""Enqueue Celery jobs behind a circuit breaker.

A broker outage delays a page by a second at most and never causes an error.
"""

from collections.abc import Callable
from typing import Any

import structlog
from django.db import transaction
from kombu.exceptions import OperationalError

from core.circuit_breaker import CircuitBreaker

log = structlog.get_logger(__name__)

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
