"""Timestamps of requests: every date-time of RFC 3339 is accepted, and stored within the supported years."""

from datetime import UTC, datetime

import pytest

from core.text.timestamps import EARLIEST, LATEST, parse_timestamp

TIMES = {
    "2026-03-07T14:55:05Z": datetime(2026, 3, 7, 14, 55, 5, tzinfo=UTC),
    "2026-03-07t14:55:05z": datetime(2026, 3, 7, 14, 55, 5, tzinfo=UTC),
    "2026-03-07T14:55:05.1234567891+02:00": datetime(2026, 3, 7, 12, 55, 5, 123456, tzinfo=UTC),
    "2016-12-31T23:59:60Z": datetime(2017, 1, 1, tzinfo=UTC),
    "0000-02-29T00:00:00Z": EARLIEST,
    "0001-01-01T00:00:00+23:59": EARLIEST,
    "0399-02-21T05:53:16+07:03": EARLIEST,
    "9999-12-31T23:59:59Z": LATEST,
    "9999-12-31T23:59:59-23:59": LATEST,
    "9999-12-31T23:59:60Z": LATEST,
}
INVALID = ("", "2026-03-07", "2026-03-07T14:55:05", "0000-02-30T00:00:00Z", "2026-13-40T25:61:00Z", "soon")


@pytest.mark.parametrize("text", TIMES)
def test_a_timestamp_is_converted_to_utc_and_limited(text):
    assert parse_timestamp(text) == TIMES[text]


@pytest.mark.parametrize("text", INVALID)
def test_a_text_that_is_no_timestamp_raises(text):
    with pytest.raises(ValueError, match=r"."):
        parse_timestamp(text)
