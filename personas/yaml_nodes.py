"""YAML events to nodes that know their lines; libyaml makes the events wherever it reads as PyYAML does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import yaml

MAX_DEPTH = 20
# More than ten times as quick as PyYAML, but not on every machine.
LIBYAML = getattr(yaml, "CBaseLoader", None)
# Where the two differ: tabs, a comment that touches the sign of a block, a question mark that stands alone.
DIFFERENT = re.compile(r"\t|[|>][-+0-9]*#|\?(?<!\S\?)(?!\S)")
FRAMES = (yaml.StreamStartEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent, yaml.StreamEndEvent)

# The stubs say that a mark may be missing; a parser's never is.
Event: TypeAlias = Any


class Doubt(ValueError):
    """Something is to be refused, or may be read in two ways: PyYAML decides, and has the words."""


class Node(NamedTuple):
    kind: Literal["text", "list", "keys"]
    line: int
    column: int
    # The line after it; that of a block is its last part's, for its own mark lies past the comments below.
    end: int
    text: str = ""
    # A mapping's keys and values come by turns.
    parts: Sequence[Node] = ()
    is_plain: bool = False
    is_flow: bool = False

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        return zip(self.parts[::2], self.parts[1::2], strict=True)


def pyyaml_events(text: str) -> Iterator[Event]:
    events: Iterator[Event] = yaml.parse(text, Loader=yaml.BaseLoader)
    return events


def libyaml_events(text: str) -> Iterator[Event]:
    if LIBYAML is None or is_read_differently(text):
        raise Doubt
    events: Iterator[Event] = yaml.parse(text, Loader=LIBYAML)
    return events


def is_read_differently(text: str) -> bool:
    # Between brackets PyYAML takes a question mark in the midst of a word for a sign of its own.
    return ("?" in text and ("[" in text or "{" in text)) or bool(DIFFERENT.search(text))


def compose(events: Iterator[Event]) -> Node | None:
    """The one document's root, if there is any; never deeper than allowed, whoever made the events."""
    root = None
    for event in events:
        if not isinstance(event, FRAMES):
            root = _node(event, events, 1)
        elif getattr(event, "explicit", False):
            raise Doubt
    return root


def _node(event: Event, events: Iterator[Event], depth: int) -> Node:
    # An alias has an anchor too, and no tag to ask for.
    if event.anchor or event.tag:
        raise Doubt
    line, column = event.start_mark.line, event.start_mark.column
    if isinstance(event, yaml.ScalarEvent):
        return Node("text", line, column, _line_after(event), event.value, is_plain=not event.style)
    if depth > MAX_DEPTH:
        raise Doubt
    parts = []
    for last in events:
        if isinstance(last, yaml.CollectionEndEvent):
            break
        parts.append(_node(last, events, depth + 1))
    end = _line_after(last) if event.flow_style else parts[-1].end
    kind: Literal["list", "keys"] = "keys" if isinstance(event, yaml.MappingStartEvent) else "list"
    return Node(kind, line, column, end, parts=parts, is_flow=bool(event.flow_style))


def _line_after(event: Event) -> int:
    return int(event.end_mark.line) + bool(event.end_mark.column)
