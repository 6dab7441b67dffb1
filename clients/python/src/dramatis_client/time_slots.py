"""Replace the time in a fetched text, without the server.

Only text that is known to show the time is changed, and only if the server's own time is found there in the
expected form. Everything else needs `render`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dramatis_client.problems import NotFillable
from dramatis_client.prompt_parts import Segment

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# Slots whose text does not depend on the time. A slot that is listed nowhere here makes a text unfillable.
TIMELESS_SLOTS = frozenset(
    {
        *("dramatis.task", "dramatis.background", "dramatis.planning", "dramatis.error", "dramatis.call"),
        *("dramatis.tool_calling", "dramatis.tool_guidelines", "dramatis.tools"),
        *("moltis.guidelines", "moltis.introduction", "moltis.memory_hint", "moltis.runtime"),
        *("moltis.tool_calling", "moltis.tool_schemas", "nova.task", "nova.background"),
        *("opal.identity", "opal.append", "opal.guidelines", "opal.planning"),
        *("pi.tools", "pi.guidelines", "pi.replace", "pi.append", "pi.skills", "ptc.tools", "ptc.error"),
    }
)


class LocalTime(NamedTuple):
    """A time with the name of its time zone, which may be empty, and its short name."""

    now: datetime
    timezone: str
    zone: str

    @property
    def date(self) -> str:
        now = self.now
        return f"{WEEKDAYS[now.weekday()]}, {MONTHS[now.month - 1]} {now.day}, {now.year}"


class Replacement(NamedTuple):
    """New text for a range of the old text."""

    start: int
    end: int
    text: str


def format_time_in_tag(time: LocalTime) -> str:
    """Format the time as the layouts dramatis and nova do."""
    zone = time.timezone or time.zone
    shown = f" ({zone})" if zone else ""
    return f"Current time: {time.date} at {time.now.hour:02d}:{time.now.minute:02d}{shown}"


def format_time_in_line(time: LocalTime) -> str:
    """Format the time as the layout pi does."""
    now, half = time.now, "AM" if time.now.hour < 12 else "PM"
    clock = f"{now.hour % 12 or 12:02d}:{now.minute:02d}:{now.second:02d} {half}"
    return f"Current date and time: {time.date} at {clock} {time.zone}".rstrip()


TIME_FORMATS: dict[str, Callable[[LocalTime], str]] = {
    "dramatis.now": format_time_in_tag,
    "nova.context": format_time_in_tag,
    "pi.date": format_time_in_line,
}


def find_replacements(
    text: str, segments: Sequence[Segment], slots: Mapping[str, Any], new: LocalTime
) -> list[Replacement]:
    """Return what has to change in the text; raise NotFillable if that is not known for certain."""
    old: LocalTime | None = None
    replacements = []
    for segment in segments:
        if not segment.slot or segment.slot in TIMELESS_SLOTS:
            continue
        if segment.slot not in TIME_FORMATS:
            raise NotFillable(f"This client does not support the slot {segment.slot}. Call render().")
        old = old or parse_local_time(slots)
        old_text, new_text = TIME_FORMATS[segment.slot](old), TIME_FORMATS[segment.slot](new)
        if text.count(old_text, segment.start, segment.end) != 1:
            raise NotFillable("The time is not where it is expected in the text. Call render().")
        start = text.index(old_text, segment.start, segment.end)
        replacements.append(Replacement(start, start + len(old_text), new_text))
    return replacements


def parse_local_time(slots: Mapping[str, Any]) -> LocalTime:
    try:
        now = datetime.fromisoformat(slots["now"])
        return LocalTime(now, str(slots.get("timezone") or ""), str(slots.get("zone") or ""))
    except (KeyError, TypeError, ValueError) as error:
        raise NotFillable("The server did not state the time of the text. Call render().") from error


def to_local_time(now: datetime, timezone: str) -> LocalTime:
    """Convert a time as the server does: to the time zone of the prompt, or else with its own UTC offset."""
    if now.tzinfo is None:
        raise ValueError("`now` must have a time zone, for example datetime.now(UTC).")
    # As sent in JSON, which has an offset and no zone name.
    sent = datetime.fromisoformat(now.isoformat())
    local = sent.astimezone(load_timezone(timezone)) if timezone else sent
    return LocalTime(local, timezone, local.tzname() or "")


def load_timezone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        raise NotFillable(f"This machine does not know the time zone {name}. Call render().") from error


def apply_replacements(text: str, replacements: Sequence[Replacement]) -> str:
    for start, end, new_text in reversed(replacements):
        text = text[:start] + new_text + text[end:]
    return text


def shift_offset(offset: int, replacements: Sequence[Replacement]) -> int:
    """Return where an offset of the old text is in the new one."""
    return offset + sum(len(one.text) - (one.end - one.start) for one in replacements if one.end <= offset)
