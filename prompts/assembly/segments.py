"""Segments: the chunks of text that a prompt consists of, each with its origin and volatility."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# Ordered from the least to the most volatile; a prefix can be cached as long as its most volatile text.
RELEASE, REFRESH, CHANNEL, USER, SESSION, TURN = "release", "refresh", "channel", "user", "session", "turn"
VOLATILITY_LEVELS = (RELEASE, REFRESH, CHANNEL, USER, SESSION, TURN)


class Origin(NamedTuple):
    """The record (kind, id, revision) or file (path) that a text came from."""

    kind: str = ""
    id: str = ""
    revision: int = 0
    path: str = ""


# Text of the layout itself: tags, headings, fixed guidance.
LAYOUT_ORIGIN = Origin("layout")


class TextChunk(NamedTuple):
    """Part of the text of a section, with its origin."""

    text: str
    origin: Origin = LAYOUT_ORIGIN


# Plain pairs are allowed too: they are created three times as fast as TextChunk.
TextChunks = Sequence[tuple[str, Origin]]


class Segment(NamedTuple):
    """A chunk of text at its position in a prompt.

    The first `lead` characters are the separator from the previous text; they are removed when there is none.
    A segment with a `slot` begins a run of `span` segments that a call may replace: the renderer of that name
    receives the slot data in `given` and the slots of the call, and its result replaces the run.
    The fields are published by the API (`dataclass_json`).
    """

    section: str
    text: str
    origin: Origin
    volatility: str
    lead: int = 0
    slot: str = ""
    given: Mapping[str, Any] | None = None
    span: int = 1


def is_record_id(value: str) -> bool:
    """Tell whether the id of an origin is a primary key; text from an agent's own fields has its slug."""
    return value.isascii() and value.isdecimal()
