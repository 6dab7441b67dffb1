"""Timezones that a user or a user profile can have."""

from functools import cache
from zoneinfo import available_timezones

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _


@cache
def list_timezone_names() -> tuple[str, ...]:
    """Return all IANA timezone names, sorted. `localtime` is a file on some systems, not a timezone."""
    return tuple(sorted(name for name in available_timezones() if name != "localtime"))


def validate_timezone(value: str) -> None:
    if value not in list_timezone_names():
        raise ValidationError(
            _("“%(value)s” is not a known time zone. Use a name such as Europe/Vienna."),
            code="timezone",
            params={"value": value},
        )
