"""What a prompt is made of: pieces of text that know where they came from."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# From the slowest to the quickest to change; a cache keeps a prefix as long as nothing in it is quicker.
RELEASE, REFRESH, CHANNEL, USER, SESSION, TURN = "release", "refresh", "channel", "user", "session", "turn"
VOLATILITY_LEVELS = (RELEASE, REFRESH, CHANNEL, USER, SESSION, TURN)


class Origin(NamedTuple):
    """The record (kind, id, revision) or file (path) that words came from."""

    kind: str = ""
    id: str = ""
    revision: int = 0
    path: str = ""


# Words that belong to the layout itself: tags, headings, standing guidance.
LAYOUT_ORIGIN = Origin("layout")


class TextChunk(NamedTuple):
    """Some text of one section, with its origin."""

    text: str
    origin: Origin = LAYOUT_ORIGIN


# A plain pair does as well, and is made three times as quickly where there are many.
TextChunks = Sequence[tuple[str, Origin]]


class Segment(NamedTuple):
    """A piece at its place in a prompt.

    The first `lead` characters are the separator from what stands before; they fall away when nothing does.
    A segment with a `slot` begins a run of `span` segments that a call may replace: the renderer of that name
    gets `given` and the call's slots, and what it returns takes the place of the run.
    """

    section: str
    text: str
    origin: Origin
    volatility: str
    lead: int = 0
    slot: str = ""
    given: Mapping[str, Any] | None = None
    span: int = 1


def is_record_id(said: str) -> bool:
    """Words of an agent's settings name it by its slug; they hold no record."""
    return said.isascii() and said.isdecimal()
