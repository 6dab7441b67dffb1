"""Segments: the chunks of text that a prompt consists of, each with its origin and volatility."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# Volatility: how often a text changes, ordered from the least to the most volatile. A prompt cache can reuse
# a prefix of the prompt until the most volatile text in that prefix changes.
RELEASE, REFRESH, CHANNEL, USER, SESSION, TURN = "release", "refresh", "channel", "user", "session", "turn"
VOLATILITY_LEVELS = (RELEASE, REFRESH, CHANNEL, USER, SESSION, TURN)
# Text of these levels comes from a call. A provider can cache only what precedes the first such text.
CALL_VOLATILITIES = frozenset({SESSION, TURN})


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


class SkillFile(NamedTuple):
    """The SKILL.md of a skill: its bytes, and the record or context file that it comes from.

    Bots read it separately from the prompt.
    """

    name: str
    origin: Origin
    data: bytes


class Segment(NamedTuple):
    """A chunk of text at its position in a prompt.

    The first `lead` characters separate the segment from the previous text; they are removed if the segment
    becomes the first of the prompt. A segment with a `slot` begins a run of `span` segments that a call may
    replace: the renderer registered under the slot's name receives the slot data in `given` and the slots of
    the call, and its result replaces the run. The API publishes the field names (`dataclass_json`).
    """

    section: str
    text: str
    origin: Origin
    volatility: str
    lead: int = 0
    slot: str = ""
    given: Mapping[str, Any] | None = None
    span: int = 1


def get_texts_by_section(segments: Sequence[Segment]) -> dict[str, str]:
    """Return the text of each section in prompt order, including the separator before it."""
    texts_by_section: dict[str, list[str]] = {}
    for segment in segments:
        texts_by_section.setdefault(segment.section, []).append(segment.text)
    return {section: "".join(texts) for section, texts in texts_by_section.items() if any(texts)}


def get_call_volatility(volatility: str) -> str:
    """Return the volatility of text that a call supplies in a part whose built text has this volatility."""
    return volatility if volatility in CALL_VOLATILITIES else TURN


def is_record_id(value: str) -> bool:
    """Tell whether the id of an origin is a primary key; for an agent's own fields it is the agent's slug."""
    return value.isascii() and value.isdecimal()
