"""Retries with exponential backoff and jitter."""

import random

from dramatis_client.io import NoResponse, Plan, Send, SendResult, Sleep
from dramatis_client.problems import Unreachable
from dramatis_client.requests import Request
from dramatis_client.responses import Response

BASE_DELAY = 0.25
# A longer Retry-After is raised to the caller instead of blocking it.
MAX_DELAY = 30.0
RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})


def send_with_retries(request: Request, attempts: int, timeout: float | None = None) -> Plan[Response]:
    """Send a request, with retries after passing failures; raise Unreachable if there is no response."""
    for attempt in range(attempts):
        result: SendResult = yield Send(request, timeout)
        delay = get_retry_delay(result, attempt)
        if delay is None or attempt == attempts - 1:
            break
        yield Sleep(delay)
    if isinstance(result, NoResponse):
        raise Unreachable(f"No response from the server: {result.error}.") from result.error
    return result


def get_retry_delay(result: SendResult, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt, or None if a retry is pointless."""
    # Jitter, so that many bots do not retry at the same time.
    backoff: float = BASE_DELAY * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311  # no secret
    if isinstance(result, NoResponse):
        return backoff
    if result.status not in RETRYABLE_STATUSES and not is_in_progress(result):
        return None
    delay = max(backoff, result.retry_after or 0.0)
    return delay if delay <= MAX_DELAY else None


def is_in_progress(response: Response) -> bool:
    """Return whether the server is still processing an earlier attempt with the same Idempotency-Key."""
    problem = response.parse_problem() if response.status == 409 else None
    return problem is not None and problem.code == "in_progress"
