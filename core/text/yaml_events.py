"""Parse YAML into events: with libyaml if its result is known to be the same as that of PyYAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

MAX_DEPTH = 20
# The libyaml parser is more than ten times faster than the Python parser of PyYAML, but it is not available
# on every machine.
LIBYAML = getattr(yaml, "CBaseLoader", None)
BRACKET, COMMENT_AT_BLOCK = re.compile(r"[\[{]"), re.compile(r"[|>][-+0-9]*#")

# Any, because the type stubs declare the marks (positions) of events as optional. Parsed events have them.
YamlEvent: TypeAlias = Any


class AmbiguousYaml(ValueError):
    """The text is invalid, or libyaml and PyYAML may disagree.

    The caller then parses the text with PyYAML, which decides and provides the messages.
    """


def parse_with_pyyaml(text: str) -> Iterator[YamlEvent]:
    events: Iterator[YamlEvent] = yaml.parse(text, Loader=yaml.BaseLoader)
    return events


def parse_with_libyaml(text: str) -> Iterator[YamlEvent]:
    if LIBYAML is None or is_ambiguous_yaml(text):
        raise AmbiguousYaml
    return iter(LIBYAML(text).get_event, None)


def is_ambiguous_yaml(text: str) -> bool:
    """Return whether libyaml and PyYAML differ, or might differ, on this text."""
    # Inside brackets PyYAML, unlike libyaml, treats a question mark within a word as the key indicator.
    bracket = BRACKET.search(text) if "?" in text else None
    has_question_mark = bracket is not None and "?" in text[bracket.start() :]
    return has_question_mark or "\t" in text or ("#" in text and bool(COMMENT_AT_BLOCK.search(text)))


def get_next_line(event: YamlEvent) -> int:
    return int(event.end_mark.line) + bool(event.end_mark.column)
