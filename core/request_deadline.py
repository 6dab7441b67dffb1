"""The deadline of the request that the current thread handles, and the error after it."""

import time
from threading import local

from django.db import OperationalError

state = local()


class RequestTimeout(OperationalError):
    """The request took too long. A subclass of OperationalError, so transactions are rolled back and the
    response is a 503 with Retry-After."""


def set_request_deadline(deadline: float | None) -> None:
    """Set the deadline, in seconds of `time.monotonic()`, or remove it."""
    state.deadline = deadline


def is_past_deadline(grace: float = 0.0) -> bool:
    deadline = getattr(state, "deadline", None)
    return deadline is not None and time.monotonic() >= deadline + grace


def check_request_deadline(grace: float = 0.0) -> None:
    if is_past_deadline(grace):
        raise RequestTimeout("The request timed out.")
