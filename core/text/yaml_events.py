"""YAML as a row of events, made by libyaml wherever it surely reads what PyYAML reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

MAX_DEPTH = 20
# More than ten times as quick as PyYAML, but not on every machine.
LIBYAML = getattr(yaml, "CBaseLoader", None)
BRACKET, COMMENT_AT_BLOCK = re.compile(r"[\[{]"), re.compile(r"[|>][-+0-9]*#")

# The stubs say that a mark may be missing; a parser's never is.
YamlEvent: TypeAlias = Any


class AmbiguousYaml(ValueError):
    """Something is to be refused, or may be read in two ways: PyYAML decides, and has the words."""


def parse_with_pyyaml(text: str) -> Iterator[YamlEvent]:
    events: Iterator[YamlEvent] = yaml.parse(text, Loader=yaml.BaseLoader)
    return events


def parse_with_libyaml(text: str) -> Iterator[YamlEvent]:
    if LIBYAML is None or is_ambiguous_yaml(text):
        raise AmbiguousYaml
    return iter(LIBYAML(text).get_event, None)


def is_ambiguous_yaml(text: str) -> bool:
    """Where libyaml is known to part from PyYAML, or might; the rest both read alike."""
    # Between brackets PyYAML takes a question mark in the midst of a word for a sign of its own.
    brackets = BRACKET.search(text) if "?" in text else None
    is_question = brackets is not None and "?" in text[brackets.start() :]
    return is_question or "\t" in text or ("#" in text and bool(COMMENT_AT_BLOCK.search(text)))


def get_next_line(event: YamlEvent) -> int:
    return int(event.end_mark.line) + bool(event.end_mark.column)
