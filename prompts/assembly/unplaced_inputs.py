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
EVERYWHERE = frozenset({"messages", "timezone", "zone"})

USE = attrgetter("use")
# Whether what an input holds says anything.
Says = Callable[[Any], Any]


def _fields(record: str, *names: str) -> dict[str, tuple[str, Says]]:
    return {f"{record}.{name}": (record, attrgetter(name)) for name in names}


def _tools(use: str) -> tuple[str, Says]:
    return "tools", lambda tools: use in map(USE, tools)


# Every input by the name that parts use for it: which field of the inputs it is, and what is asked of it.
FACETS: dict[str, tuple[str, Says]] = {
    **_fields("identity", "name", "emoji", "creature", "vibe", "text"),
    "soul": ("soul", attrgetter("text")),
    **_fields("user", "name", "timezone", "location", "notes"),
    **{name: (name, attrgetter("text")) for name in ("instructions", "base", "append", "mission")},
    **{name: (name, len) for name in ("responsibilities", "memories", "context_files")},
    **{name: (name, len) for name in ("workspace_files", "skills")},
    "tools": _tools("active"),
    "planning_tools": _tools("planning"),
    **{name: (name, len) for name in ("working_directory", "directories", "capabilities")},
    **_fields("channel", "formatting"),
    "data": ("data", attrgetter("values")),
    "documentation": ("documentation", bool),
}


def lost(layout: Layout, inputs: PromptInputs) -> tuple[str, ...]:
    """The inputs that say something and that no part of the layout uses."""
    displaced = layout.displaced(inputs)
    placed = layout.used.difference(displaced) if displaced else layout.used
    return tuple(
        [name for name, of, says in unplaced(placed) if (held := getattr(inputs, of)) and says(held)]
    )


@cache
def unplaced(placed: frozenset[str]) -> list[tuple[str, str, Says]]:
    # There are only as many answers as layouts and ways to displace something in them.
    return [(name, *facet) for name, facet in FACETS.items() if name not in placed]


def lost_slots(layout: Layout, slots: Slots) -> tuple[str, ...]:
    """The facts of a call that the layout has no place for."""
    said = [each.name for each in fields(slots) if getattr(slots, each.name)]
    return tuple([f"slots.{name}" for name in said if name not in layout.slots and name not in EVERYWHERE])
