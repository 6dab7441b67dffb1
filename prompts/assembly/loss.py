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

Facet = Callable[[PromptInputs], Any]


def _of(record: str, field: str) -> Facet:
    def facet(inputs: PromptInputs) -> Any:
        held = getattr(inputs, record)
        return held is not None and getattr(held, field)

    return facet


def _tools(use: str) -> Facet:
    return lambda inputs: use in map(USE, inputs.tools)


# Every input by the name that parts use for it, with the question whether it says anything.
FACETS: dict[str, Facet] = {
    **{
        f"identity.{field}": _of("identity", field) for field in ("name", "emoji", "creature", "vibe", "text")
    },
    "soul": _of("soul", "text"),
    **{f"user.{field}": _of("user", field) for field in ("name", "timezone", "location", "notes")},
    **{name: _of(name, "text") for name in ("instructions", "base", "append", "mission")},
    **{name: attrgetter(name) for name in ("responsibilities", "memories")},
    **{name: attrgetter(name) for name in ("context_files", "workspace_files", "skills")},
    "tools": _tools("active"),
    "planning_tools": _tools("planning"),
    **{name: attrgetter(name) for name in ("working_directory", "directories", "capabilities")},
    "channel.formatting": _of("channel", "formatting"),
    "data": _of("data", "values"),
    "documentation": attrgetter("documentation"),
}


def lost(layout: Layout, inputs: PromptInputs) -> tuple[str, ...]:
    """The inputs that say something and that no part of the layout uses."""
    displaced = layout.displaced(inputs)
    placed = layout.used.difference(displaced) if displaced else layout.used
    return tuple([name for name, said in unplaced(placed) if said(inputs)])


@cache
def unplaced(placed: frozenset[str]) -> list[tuple[str, Facet]]:
    # There are only as many answers as layouts and ways to displace something in them.
    return [(name, said) for name, said in FACETS.items() if name not in placed]


def lost_slots(layout: Layout, slots: Slots) -> tuple[str, ...]:
    """The facts of a call that the layout has no place for."""
    said = [each.name for each in fields(slots) if getattr(slots, each.name)]
    return tuple([f"slots.{name}" for name in said if name not in layout.slots and name not in EVERYWHERE])
