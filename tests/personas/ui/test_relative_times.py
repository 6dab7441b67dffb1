"""Relative times such as “3 hours ago” are those of Django, and are kept per language."""

from datetime import UTC, datetime, timedelta

from django.utils import translation
from django.utils.timesince import timesince, timeuntil
from hypothesis import example, given
from hypothesis import strategies as st

from personas.templatetags.ui import _describe_time, _format_time_distance, ago

MOMENTS = st.datetimes(datetime(1999, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # by timezones
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


@given(at=MOMENTS, now=MOMENTS)
@example(at=datetime(2026, 2, 28, 12, tzinfo=UTC), now=NOW)
@example(at=datetime(2026, 3, 3, 12, tzinfo=UTC), now=NOW)
@example(at=datetime(2024, 2, 29, tzinfo=UTC), now=datetime(2025, 2, 28, tzinfo=UTC))
@example(at=NOW, now=NOW - timedelta(days=30))
@example(at=NOW - timedelta(seconds=60), now=NOW)
@example(at=NOW - timedelta(seconds=60, microseconds=1), now=NOW + timedelta(microseconds=5))
def test_the_time_is_that_of_django(at, now):
    if abs((now - at).total_seconds()) < 60:
        expected = "just now"
    elif at > now:
        expected = f"in {timeuntil(at, now, depth=1)}"
    else:
        expected = f"{timesince(at, now, depth=1)} ago"
    assert _format_time_distance(at, now) == expected.replace("\xa0", " ")


@given(minutes=st.integers(1, 60 * 24 * 40))
def test_the_time_in_the_last_weeks_is_that_of_django(minutes):
    at = NOW - timedelta(minutes=minutes)
    assert _format_time_distance(at, NOW) == f"{timesince(at, NOW, depth=1)} ago".replace("\xa0", " ")


def test_a_text_is_kept_per_language():
    at = NOW - timedelta(hours=3)
    _describe_time.cache_clear()
    with translation.override("de"):
        german = _format_time_distance(at, NOW)
    with translation.override("en"):
        assert _format_time_distance(at, NOW) == "3 hours ago"
    assert "Stunden" in german
    assert _describe_time.cache_info().currsize == 2


def test_the_exact_time_is_in_the_title():
    with translation.override("en"):
        assert 'title="31 Mar 2026, 12:00:00 UTC"' in ago(NOW)
    assert ago(None) == ""
