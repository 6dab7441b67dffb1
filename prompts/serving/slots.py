"""The facts of a call as they are stored: enough to fill the same words again, to the byte."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import Q

from personas.errors import InvalidInput
from personas.models import Task, Workspace
from prompts.assembly.errors import AssemblyError
from prompts.assembly.json_codec import dataclass_json, parse_dataclass
from prompts.assembly.slots import Slots

SlotData = dict[str, Any]


def normalize_slots(slots: Slots) -> tuple[Slots, SlotData]:
    """The slots as they will be read back, and stored; filled with any others, a replay could differ."""
    try:
        read = slots_from_json(sanitize_value(dataclass_json(slots), "slots"))
    except AssemblyError as error:
        raise InvalidInput.on(error.path or "slots", error.message) from error
    return read, slots_json(read)


def build_clock_slots(now: datetime, timezone: str) -> tuple[Slots, SlotData]:
    """The same for a call that says nothing, as most do; quicker, for there is only the time to settle."""
    local = now.astimezone(_get_zone(timezone))
    said, zone = local.isoformat(), local.tzname() or ""
    facts = {"now": said, "zone": zone} if zone else {"now": said}
    return Slots(now=datetime.fromisoformat(said), zone=zone), facts


def slots_json(slots: Slots) -> SlotData:
    said: SlotData = dataclass_json(slots)
    return said


def slots_from_json(data: Mapping[str, Any]) -> Slots:
    return parse_dataclass(Slots, data)


def sanitize_value(value: Any, path: str) -> Any:
    """The value without what a database or a digest would not give back as it was."""
    if isinstance(value, float):
        # A fraction has many spellings and no one form: it is kept, and so served, as the text of it.
        return repr(value)
    if isinstance(value, dict):
        return {
            sanitize_value(key, path): sanitize_value(item, f"{path}.{key}") for key, item in value.items()
        }
    if isinstance(value, list):
        return [sanitize_value(item, f"{path}[{place}]") for place, item in enumerate(value)]
    if isinstance(value, str) and "\0" in value:
        raise AssemblyError(path, "the character U+0000 cannot be stored")
    return value


def fill_clock(slots: Slots, now: datetime, timezone: str) -> Slots:
    """The time where the user is, unless the caller has said what time it is; with the name of its zone.

    The name is stored apart: a moment in JSON keeps only its offset.
    """
    local = slots.now or now.astimezone(_get_zone(slots.timezone or timezone))
    return replace(slots, now=local, zone=slots.zone or local.tzname() or "")


@lru_cache(maxsize=500)
def _get_zone(name: str) -> ZoneInfo:
    """A zone nobody knows is no reason to hand out nothing."""
    try:
        return ZoneInfo(name or "UTC")
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return ZoneInfo("UTC")


def find_task_json(workspace: Workspace | int, agent: str, number: int) -> dict[str, Any] | None:
    """A task of the agent, or of nobody's; nothing where there is none of this number."""
    tasks = Task.objects.in_workspace(workspace).filter(archived_at=None, number=number)
    mine = tasks.filter(Q(agent=None) | Q(agent__slug=agent)).prefetch_related("steps").first()
    if mine is None:
        return None
    return {
        "number": mine.number,
        "title": mine.title,
        "description": mine.description,
        "status": mine.status,
        "steps": [{"title": step.title, "is_done": step.is_done} for step in mine.steps.all()],
    }
