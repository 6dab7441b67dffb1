"""Which inputs a layout has no place for: named, so that nothing is dropped in silence."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any

from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.slots import Slots

# Messages travel beside every prompt; a zone's names only say more about the time.
ALWAYS_PLACED_SLOTS = frozenset({"messages", "timezone", "zone"})

get_tool_use = attrgetter("use")
# Whether what an input holds says anything.
ContentTest = Callable[[Any], Any]


def _build_field_facets(record: str, *names: str) -> dict[str, tuple[str, ContentTest]]:
    return {f"{record}.{name}": (record, attrgetter(name)) for name in names}


def _build_tool_facet(use: str) -> tuple[str, ContentTest]:
    return "tools", lambda tools: use in map(get_tool_use, tools)


# Every input by the name that parts use for it: which field of the inputs it is, and what is asked of it.
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
    "data": ("data", attrgetter("values")),
    "documentation": ("documentation", bool),
}


def list_unplaced_inputs(layout: Layout, inputs: PromptInputs) -> tuple[str, ...]:
    """The inputs that say something and that no part of the layout uses."""
    displaced = layout.displaced(inputs)
    placed = layout.used.difference(displaced) if displaced else layout.used
    return tuple(
        [
            name
            for name, of, says in list_unplaced_facets(placed)
            if (held := getattr(inputs, of)) and says(held)
        ]
    )


@cache
def list_unplaced_facets(placed: frozenset[str]) -> list[tuple[str, str, ContentTest]]:
    # There are only as many answers as layouts and ways to displace something in them.
    return [(name, *facet) for name, facet in INPUT_FACETS.items() if name not in placed]


def list_unplaced_slots(layout: Layout, slots: Slots) -> tuple[str, ...]:
    """The facts of a call that the layout has no place for."""
    said = [each.name for each in fields(slots) if getattr(slots, each.name)]
    return tuple(
        [f"slots.{name}" for name in said if name not in layout.slots and name not in ALWAYS_PLACED_SLOTS]
    )
