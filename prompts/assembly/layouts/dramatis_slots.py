"""What a call adds to our own layout: time and place, task, background, planning, the last error."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly.dates import date_words, hour_words, zone_words
from prompts.assembly.frames import tagged
from prompts.assembly.runtime_lines import runtime_lines
from prompts.assembly.slots import Slots, slot
from prompts.assembly.task_text import task_words
from prompts.assembly.text import bullet, normalised, on_one_line, single_line
from prompts.assembly.texts import dramatis as words

NOW, TASK, BACKGROUND = "dramatis.now", "dramatis.task", "dramatis.background"
PLANNING, ERROR, SAID = "dramatis.planning", "dramatis.error", "dramatis.call"


@slot(NOW)
def now(slots: Slots, _: Mapping[str, Any]) -> str:
    """The time, then where the call runs."""
    said = runtime_lines(slots)
    if slots.now is not None:
        zone = slots.timezone or zone_words(slots.now, slots.zone)
        said.insert(0, f"Current time: {date_words(slots.now)} at {hour_words(slots.now)} ({zone})")
    return tagged("now", "\n".join(said))


@slot(TASK)
def task(slots: Slots, _: Mapping[str, Any]) -> str:
    return tagged("task", task_words(slots.task)) if slots.task else ""


@slot(BACKGROUND)
def background(slots: Slots, _: Mapping[str, Any]) -> str:
    return tagged("background", words.BACKGROUND) if slots.is_background else ""


@slot(PLANNING)
def planning(slots: Slots, _: Mapping[str, Any]) -> str:
    if slots.session is None or not slots.session.plan_path:
        return ""
    return tagged("planning", words.PLANNING.format(path=on_one_line(slots.session.plan_path)))


@slot(ERROR)
def previous_error(slots: Slots, _: Mapping[str, Any]) -> str:
    failed = slots.previous_error
    if failed is None:
        return ""
    facts = (("Error", single_line(failed.error)), ("Message", failed.message), ("Context", failed.context))
    said = [bullet(f"{label}: {fact}") for label, fact in facts if fact]
    return tagged("previous-error", "\n".join([*said, "", words.PREVIOUS_ERROR]))


@slot(SAID)
def call(slots: Slots, _: Mapping[str, Any]) -> str:
    return tagged("this-call", normalised(slots.append))
