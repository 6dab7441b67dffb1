"""Slots of the dramatis layout: time and host, task, background, planning, previous error."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly.dates import format_24_hour_time, format_date, get_zone_name
from prompts.assembly.frames import wrap_in_tag
from prompts.assembly.runtime_lines import format_runtime_lines
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.task_text import format_task
from prompts.assembly.text import collapse_lines, collapse_whitespace, format_bullet, normalize_line_ends
from prompts.assembly.texts import dramatis as texts

NOW_SLOT, TASK_SLOT, BACKGROUND_SLOT = "dramatis.now", "dramatis.task", "dramatis.background"
PLANNING_SLOT, ERROR_SLOT, CALL_SLOT = "dramatis.planning", "dramatis.error", "dramatis.call"


@register_slot(NOW_SLOT)
def render_dramatis_now(slots: Slots, _: Mapping[str, Any]) -> str:
    """Render the current time, then the host and the sandbox of the call."""
    lines = format_runtime_lines(slots)
    if slots.now is not None:
        zone = slots.timezone or get_zone_name(slots.now, slots.zone)
        lines.insert(
            0, f"Current time: {format_date(slots.now)} at {format_24_hour_time(slots.now)} ({zone})"
        )
    return wrap_in_tag("now", "\n".join(lines))


@register_slot(TASK_SLOT)
def render_dramatis_task(slots: Slots, _: Mapping[str, Any]) -> str:
    return wrap_in_tag("task", format_task(slots.task)) if slots.task else ""


@register_slot(BACKGROUND_SLOT)
def render_dramatis_background(slots: Slots, _: Mapping[str, Any]) -> str:
    return wrap_in_tag("background", texts.BACKGROUND_NOTICE) if slots.is_background else ""


@register_slot(PLANNING_SLOT)
def render_dramatis_planning(slots: Slots, _: Mapping[str, Any]) -> str:
    if slots.session is None or not slots.session.plan_path:
        return ""
    return wrap_in_tag(
        "planning", texts.PLANNING_TEMPLATE.format(path=collapse_lines(slots.session.plan_path))
    )


@register_slot(ERROR_SLOT)
def render_dramatis_error(slots: Slots, _: Mapping[str, Any]) -> str:
    previous_error = slots.previous_error
    if previous_error is None:
        return ""
    facts = (
        ("Error", collapse_whitespace(previous_error.error)),
        ("Message", previous_error.message),
        ("Context", previous_error.context),
    )
    bullets = [format_bullet(f"{label}: {fact}") for label, fact in facts if fact]
    return wrap_in_tag("previous-error", "\n".join([*bullets, "", texts.PREVIOUS_ERROR_ADVICE]))


@register_slot(CALL_SLOT)
def render_dramatis_call(slots: Slots, _: Mapping[str, Any]) -> str:
    return wrap_in_tag("this-call", normalize_line_ends(slots.append))
