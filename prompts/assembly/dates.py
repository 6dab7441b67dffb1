"""Moments in English words, whatever the locale of the machine."""

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


def format_date(moment: datetime) -> str:
    """Saturday, March 7, 2026."""
    return f"{WEEKDAYS[moment.weekday()]}, {MONTHS[moment.month - 1]} {moment.day}, {moment.year}"


def format_24_hour_time(moment: datetime) -> str:
    """08:55."""
    return f"{moment.hour:02d}:{moment.minute:02d}"


def format_12_hour_time(moment: datetime) -> str:
    """08:55:05 AM."""
    half = "AM" if moment.hour < 12 else "PM"
    return f"{moment.hour % 12 or 12:02d}:{moment.minute:02d}:{moment.second:02d} {half}"


def get_zone_name(moment: datetime, zone: str = "") -> str:
    """The zone's short name: as told, else as the moment carries it."""
    return zone or moment.tzname() or ""
