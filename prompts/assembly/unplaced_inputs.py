"""List the inputs and slots that a layout does not use, so that nothing is dropped silently."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from operator import attrgetter
from typing import Any

from prompts.assembly.call_inputs import INPUT_SLOTS
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.slots import Slots

# Slots that are never reported: messages are sent along with every prompt, the time zone names only
# supplement the time, and limits and native tools affect every layout. The remaining INPUT_SLOTS are reported
# as inputs instead.
ALWAYS_PLACED_SLOTS = frozenset({"messages", "timezone", "zone", *INPUT_SLOTS}) - {"entry", "mode"}

# The input that each slot changes. If the layout does not use the input, the slot has no effect.
SLOT_INPUTS = {
    **dict.fromkeys(("data", "signature", "hidden"), "data"),
    **{name: name for name in ("mission", "working_directory", "directories")},
}
# Slots that have no effect unless they are in `Layout.slots`. Slots in neither collection are always kept.
# Some of them affect every layout: the limits, and the slots that change the tool definitions sent with the
# text (`tools`, `tool_definitions`, `native_tools` and `entry`).
LAYOUT_SLOTS = frozenset(
    {"host", "sandbox", "session", "task", "is_background", "previous_error", "append", "replace", "mode"}
)

get_tool_use = attrgetter("use")
# Receives an input and returns a true value if the input has any content.
ContentTest = Callable[[Any], Any]


def _build_field_facets(record: str, *names: str) -> dict[str, tuple[str, ContentTest]]:
    return {f"{record}.{name}": (record, attrgetter(name)) for name in names}


def _build_tool_facet(use: str) -> tuple[str, ContentTest]:
    return "tools", lambda tools: use in map(get_tool_use, tools)


# Maps each input name used in `LayoutPart.uses` to a field of PromptInputs and a test for content.
INPUT_FACETS: dict[str, tuple[str, ContentTest]] = {
    **_build_field_facets("identity", "name", "emoji", "creature", "vibe", "text"),
    "soul": ("soul", attrgetter("text")),
    **_build_field_facets("user", "name", "timezone", "location", "notes"),
    **{name: (name, attrgetter("text")) for name in ("instructions", "base", "append", "mission")},
    **{name: (name, len) for name in ("responsibilities", "memories", "context_files")},
    **{name: (name, len) for name in ("workspace_files", "skills")},
    "tools": _build_tool_facet("active"),
    "planning_tools": _build_tool_facet("planning"),
    **{name: (name, len) for name in ("working_directory", "directories", "capabilities")},
    **_build_field_facets("channel", "formatting"),
    "data": ("data", lambda data: data.values or data.signature),
    "documentation": ("documentation", bool),
}


def list_unplaced_inputs(layout: Layout, inputs: PromptInputs) -> tuple[str, ...]:
    """List the inputs that have content and that no part of the layout uses."""
    displaced = layout.displaced(inputs)
    placed = layout.used.difference(displaced) if displaced else layout.used
    return tuple(
        [
            name
            for name, field_name, has_content in list_unplaced_facets(placed)
            if (value := getattr(inputs, field_name)) and has_content(value)
        ]
    )


@cache
def list_unplaced_facets(placed: frozenset[str]) -> list[tuple[str, str, ContentTest]]:
    # The cache stays small: one entry per layout and combination of displaced inputs.
    return [(name, *facet) for name, facet in INPUT_FACETS.items() if name not in placed]


def list_unplaced_slots(layout: Layout, slots: Slots) -> tuple[str, ...]:
    """List the slots of a call that the layout does not use."""
    names = [field_.name for field_ in fields(slots) if getattr(slots, field_.name)]
    return tuple(
        [f"slots.{name}" for name in names if name not in layout.slots and name not in ALWAYS_PLACED_SLOTS]
    )


def drop_unused_slots(layout: Layout, slots: Slots) -> tuple[Slots, tuple[str, ...]]:
    """Return the slots without those that change nothing in this layout, and the names of the dropped ones.

    The prompt is the same without them, so they need not be stored.
    """
    unused = [name for name in LAYOUT_SLOTS if name not in layout.slots]
    unused += [name for name, input_name in SLOT_INPUTS.items() if input_name not in layout.used]
    empty = Slots()
    dropped = sorted(name for name in unused if getattr(slots, name) != getattr(empty, name))
    return replace(slots, **{name: getattr(empty, name) for name in dropped}), tuple(dropped)
