"""Parse timestamps of requests (RFC 3339), and convert them to UTC within the range of datetime."""

import re
from datetime import UTC, datetime, timedelta

from django.utils.dateparse import parse_datetime

# The earliest and latest times that are stored. Beyond them, converting to another timezone can overflow, and
# some formats write years with fewer than four digits.
EARLIEST = datetime(1000, 1, 1, tzinfo=UTC)
LATEST = datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
# The year 0, which datetime does not have, and a leap second.
YEAR_ZERO = re.compile(r"\A0000-")
LEAP_SECOND = re.compile(r"(?<=[T ]\d\d:\d\d):60")


def parse_timestamp(text: str) -> datetime:
    """Return the time in UTC. Raise ValueError unless it is a valid timestamp with a UTC offset.

    Every date-time of RFC 3339 is valid. Times before EARLIEST and after LATEST become these. A leap second
    becomes the next second.
    """
    # T and Z may be lowercase. The year 0 is replaced by 4, because both are leap years.
    normalized, years = YEAR_ZERO.subn("0004-", text.upper())
    normalized, leap_seconds = LEAP_SECOND.subn(":59", normalized)
    parsed = parse_datetime(normalized)
    if parsed is None or parsed.tzinfo is None:
        raise ValueError(f"Not a time with a UTC offset: {text}")
    if years:
        return EARLIEST
    try:
        timestamp = parsed.astimezone(UTC) + timedelta(seconds=leap_seconds)
    except OverflowError:
        return LATEST if parsed.year > EARLIEST.year else EARLIEST
    return min(max(timestamp, EARLIEST), LATEST)
