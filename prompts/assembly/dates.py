"""Format timestamps in English, independent of the locale of the machine."""

from datetime import datetime

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def format_date(at: datetime) -> str:
    """Format a date as in "Saturday, March 7, 2026"."""
    return f"{WEEKDAYS[at.weekday()]}, {MONTHS[at.month - 1]} {at.day}, {at.year}"


def format_24_hour_time(at: datetime) -> str:
    """Format a time as in "08:55"."""
    return f"{at.hour:02d}:{at.minute:02d}"


def format_12_hour_time(at: datetime) -> str:
    """Format a time as in "08:55:05 AM"."""
    half = "AM" if at.hour < 12 else "PM"
    return f"{at.hour % 12 or 12:02d}:{at.minute:02d}:{at.second:02d} {half}"


def get_zone_name(at: datetime, zone: str = "") -> str:
    """Return the short name of the time zone: `zone` if set, else the zone name of the timestamp."""
    return zone or at.tzname() or ""
