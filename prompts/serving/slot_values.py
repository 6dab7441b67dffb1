"""Normalize the slots of a call for storage, so that a replay reproduces the same bytes."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
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
    """Return the slots as they can be read back from storage, and the JSON to store.

    The prompt is rendered with the returned slots, so that a replay from the stored JSON gives the same text.
    """
    try:
        read = slots_from_json(sanitize_value(dataclass_json(slots), "slots"))
    except AssemblyError as error:
        raise InvalidInput.on(error.path or "slots", error.message) from error
    return read, slots_json(read)


def build_clock_slots(now: datetime, timezone: str) -> tuple[Slots, SlotData]:
    """Return the slots, and their JSON, of a call that sent none: only time and zone name are filled in.

    The result equals that of `fill_clock` and `normalize_slots`, but is computed faster.
    """
    known_zone = find_timezone(timezone)
    local = now.astimezone(known_zone or UTC)
    name = timezone if known_zone else ""
    timestamp, zone = local.isoformat(), local.tzname() or ""
    values = {"now": timestamp, "timezone": name, "zone": zone}
    return (
        Slots(now=datetime.fromisoformat(timestamp), timezone=name, zone=zone),
        {key: value for key, value in values.items() if value},
    )


def slots_json(slots: Slots) -> SlotData:
    data: SlotData = dataclass_json(slots)
    return data


def slots_from_json(data: Mapping[str, Any]) -> Slots:
    return parse_dataclass(Slots, data)


def sanitize_value(value: Any, path: str) -> Any:
    """Convert a JSON value so that the database returns it unchanged and its digest is well defined.

    Raise AssemblyError for the character U+0000, which PostgreSQL cannot store.
    """
    if isinstance(value, float):
        # Floats have no canonical JSON form, so they are converted to strings.
        return repr(value)
    if isinstance(value, dict):
        return {
            sanitize_value(key, path): sanitize_value(item, f"{path}.{key}") for key, item in value.items()
        }
    if isinstance(value, list):
        return [sanitize_value(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str) and "\0" in value:
        raise AssemblyError(path, "the character U+0000 cannot be stored")
    return value


def fill_clock(slots: Slots, now: datetime, timezone: str) -> Slots:
    """Fill in the current time, unless the call sent a time, and the name of the time's zone.

    The time zone is that of the call, or else `timezone`, that of the user profile. The short name of the
    zone, such as CST, is stored separately, because a timestamp in JSON has only a UTC offset. A time from
    the call keeps its own offset if no time zone is known.
    """
    name = slots.timezone or timezone
    zone = find_timezone(name)
    at = slots.now or now
    local = at.astimezone(zone) if zone else at if slots.now else now.astimezone(UTC)
    return replace(
        slots, now=local, timezone=name if zone else slots.timezone, zone=slots.zone or local.tzname() or ""
    )


@lru_cache(maxsize=500)
def find_timezone(name: str) -> ZoneInfo | None:
    """Return the time zone with this name, or None if the name is empty or unknown."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return None


def find_task_json(
    workspace: Workspace | int, agent: str, number: int, *, is_own: bool = False
) -> dict[str, Any] | None:
    """Return the task with this number as JSON.

    Return None unless the task exists, is not archived, and is assigned to the agent or, without `is_own`, to
    no agent.
    """
    tasks = Task.objects.in_workspace(workspace).filter(archived_at=None, number=number)
    is_allowed = Q(agent__slug=agent) if is_own else Q(agent=None) | Q(agent__slug=agent)
    task = tasks.filter(is_allowed).prefetch_related("steps").first()
    if task is None:
        return None
    return {
        "number": task.number,
        "title": task.title,
        "description": task.description,
        "status": task.status,
        "steps": [{"title": step.title, "is_done": step.is_done} for step in task.steps.all()],
    }
