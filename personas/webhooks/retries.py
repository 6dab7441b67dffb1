"""When a delivery is tried again, and how long an endpoint that fails is left alone. Pure functions."""

import random
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

# Delays before each retry, as in the Standard Webhooks specification. Up to a fifth is added (jitter).
RETRY_DELAYS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 14, 20, 24)),
)
MAX_ATTEMPTS = len(RETRY_DELAYS) + 1
MAX_RETRY_AFTER = timedelta(hours=24)
MAX_HOLD = timedelta(minutes=5)
# Response statuses of an overloaded receiver, and the minimum time without requests to it.
OVERLOADED_STATUSES = frozenset({429, 502, 504})
OVERLOADED_HOLD = timedelta(seconds=30)
JITTER = 0.2
# An HTTP date, such as "Wed, 21 Oct 2026 07:28:00 GMT". Other formats are ignored, because the parser of the
# standard library fails in several ways for offsets and numbers that a receiver makes up.
DATE_PATTERN = re.compile(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT")


def add_jitter(delay: timedelta) -> timedelta:
    return delay * (1 + random.random() * JITTER)  # noqa: S311  # not for secrets


def get_retry_time(attempt_count: int, retry_after: timedelta, now: datetime) -> datetime | None:
    """Return when to try again after so many attempts, or None after the last one."""
    if attempt_count >= MAX_ATTEMPTS:
        return None
    return now + max(add_jitter(RETRY_DELAYS[attempt_count - 1]), retry_after)


def get_hold(failures: int, status: int | None, retry_after: timedelta) -> timedelta:
    """Return how long an endpoint is left alone after so many failures in a row: 1, 2, 4… seconds.

    So a receiver that hangs or is overloaded gets few requests, and takes little time of the workers.
    """
    hold = min(timedelta(seconds=2 ** min(failures - 1, 10)), MAX_HOLD)
    if status in OVERLOADED_STATUSES:
        hold = max(hold, OVERLOADED_HOLD)
    return max(add_jitter(hold), retry_after)


def parse_retry_after(value: str, now: datetime) -> timedelta:
    """Return the time of a Retry-After header: seconds or a date. It is zero if the header is not valid."""
    if re.fullmatch(r"[0-9]{1,9}", value):
        return min(timedelta(seconds=int(value)), MAX_RETRY_AFTER)
    if not DATE_PATTERN.fullmatch(value):
        return timedelta(0)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return timedelta(0)
    return min(max(date.replace(tzinfo=UTC) - now, timedelta(0)), MAX_RETRY_AFTER)
