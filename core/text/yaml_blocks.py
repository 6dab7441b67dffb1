"""Events of YAML to blocks: every scalar is text, and every line of the source stays reachable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import yaml

from core.text.problems import TextProblem, find_character_problems, raise_for_problems
from core.text.yaml_events import MAX_DEPTH, AmbiguousYaml, YamlEvent, get_next_line

NO_KEYS_MESSAGE = 'The front matter must be lines of "key: value", not a list or a single value.'
KEY_PER_LINE_MESSAGE = "Write one key per line, at the start of the line, without braces around them."
NULL_SCALARS = ("~", "null", "Null", "NULL")

YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue]"


class YamlBlock(NamedTuple):
    """A top-level key with the comments right above it, or (key None) blank and comment lines of nobody."""

    key: str | None
    value: YamlValue
    source: str
    line: int
    flow_lines: tuple[int, ...] = ()  # Where a bracket or a brace opens a list or more keys.


def read_blocks(head: str, first_line: int, events: Iterator[YamlEvent]) -> tuple[YamlBlock, ...]:
    """Blocks whose sources join up to the head; the head's characters were checked before."""
    reader = BlockReader(head, first_line, events)
    blocks = tuple(reader.blocks())
    raise_for_problems(reader.problems)
    return blocks


class BlockReader:
    """Turns events into blocks, in one pass, and notes what only events can show."""

    def __init__(self, head: str, first_line: int, events: Iterator[YamlEvent]) -> None:
        self.lines, self.first_line, self.events = head.splitlines(keepends=True), first_line, events
        self.has_escapes = "\\" in head
        self.problems: list[TextProblem] = []
        self.flow_lines: list[int] = []
        self.depth = 0
        # The line after what was read last; a block's own mark lies past the comments that follow it.
        self.end = 0

    def blocks(self) -> Iterator[YamlBlock]:
        at = 0
        for key, line, event in self.root():
            top = line - self.first_line
            while top > at and self.lines[top - 1].startswith("#"):
                top -= 1
            if top > at:
                yield YamlBlock(None, "", self.source(at, top), self.first_line + at)
            value, flow_lines, at = self.value(event, key), tuple(self.flow_lines), self.end
            yield YamlBlock(key, value, self.source(top, at), line, flow_lines)
            self.flow_lines.clear()
        if self.flow_lines:  # An empty pair of braces has no keys, but must not pass for a comment.
            yield YamlBlock(None, "", "", self.first_line, tuple(self.flow_lines))
        elif at < len(self.lines):
            yield YamlBlock(None, "", self.source(at, len(self.lines)), self.first_line + at)

    def source(self, start: int, end: int) -> str:
        return "".join(self.lines[start:end])

    def line(self, event: YamlEvent) -> int:
        return self.first_line + int(event.start_mark.line)

    def root(self) -> Iterator[tuple[str, int, YamlEvent]]:
        for event in self.events:
            if isinstance(event, yaml.MappingStartEvent):
                yield from self.pairs(event, "")
            elif isinstance(event, yaml.NodeEvent):
                raise_for_problems([TextProblem("", self.line(event), NO_KEYS_MESSAGE)])
            elif getattr(event, "explicit", False):
                raise AmbiguousYaml

    def pairs(self, start: YamlEvent, field: str) -> Iterator[tuple[str, int, YamlEvent]]:
        """Keys with the event that begins the value; that is to be read before the next pair is asked for."""
        seen: set[str] = set()
        for event in self.entries(start):
            if self.depth == 1 and (start.flow_style or event.start_mark.column):
                raise_for_problems([TextProblem("", self.line(start), KEY_PER_LINE_MESSAGE)])
            line, key = self.line(event), self.key(event, field)
            if not isinstance(event, yaml.ScalarEvent):
                self.problems.append(TextProblem(field, line, "A key must be text, not a list or more keys."))
            elif key in seen:
                self.problems.append(
                    TextProblem(field or key, line, f'The key "{key}" appears twice; keep one.')
                )
            seen.add(key)
            yield key, line, next(self.events)

    def entries(self, start: YamlEvent) -> Iterator[YamlEvent]:
        """What begins between the two ends of a collection; whoever asks has read the rest of each."""
        self.depth += 1
        if start.anchor or start.tag or self.depth > MAX_DEPTH:
            raise AmbiguousYaml
        if start.flow_style:
            self.flow_lines.append(self.line(start))
        for event in self.events:
            if isinstance(event, yaml.CollectionEndEvent):
                break
            yield event
        if start.flow_style:
            self.end = get_next_line(event)
        self.depth -= 1

    def key(self, event: YamlEvent, field: str) -> str:
        if isinstance(event, yaml.ScalarEvent):
            return self.text(event, field)
        if isinstance(event, yaml.AliasEvent):
            raise AmbiguousYaml
        # It will be refused; what it holds is passed over, and never deeper than allowed.
        depth = self.depth + 1
        while self.depth < depth <= MAX_DEPTH:
            event = next(self.events)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise AmbiguousYaml
        return ""

    def value(self, event: YamlEvent, field: str) -> YamlValue:
        if isinstance(event, yaml.ScalarEvent):
            text = self.text(event, field)
            return "" if text in NULL_SCALARS and not event.style else text
        if isinstance(event, yaml.MappingStartEvent):
            return {key: self.value(value, field) for key, _, value in self.pairs(event, field)}
        if isinstance(event, yaml.SequenceStartEvent):
            return [self.value(item, field) for item in self.entries(event)]
        raise AmbiguousYaml

    def text(self, event: YamlEvent, field: str) -> str:
        if event.anchor or event.tag:
            raise AmbiguousYaml
        self.end = get_next_line(event)
        text = str(event.value)
        # An escape can smuggle in what the source check refused, so look at what it stands for.
        if self.has_escapes:
            self.problems += find_character_problems(text.replace("\n", " "), field, self.line(event))
        return text
