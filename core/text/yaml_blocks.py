"""Build blocks, one per top-level key, from YAML events.

Every scalar is text, and each block keeps its source lines. The head is the YAML of the front matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import yaml

from core.text.problems import TextProblem, find_character_problems, raise_for_problems
from core.text.yaml_events import MAX_DEPTH, AmbiguousYaml, YamlEvent, get_next_line

NO_KEYS_MESSAGE = 'The front matter must be lines of "key: value", not a list or a single value.'
KEY_PER_LINE_MESSAGE = "Write one key per line, at the start of the line, without braces."
SURROGATE_PAIR_PATTERN = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
NULL_SCALARS = ("~", "null", "Null", "NULL")

YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue]"


class YamlBlock(NamedTuple):
    """A top-level key with its value and the comments directly above it.

    If `key` is None, the block consists of other blank and comment lines.
    """

    key: str | None
    value: YamlValue
    source: str
    line: int
    flow_lines: tuple[int, ...] = ()  # Lines where a flow collection ([…] or {…}) opens.


def read_blocks(head: str, first_line: int, events: Iterator[YamlEvent]) -> tuple[YamlBlock, ...]:
    """Return the blocks of the head. Joining the `source` of all blocks gives the head again.

    The caller must have checked the head for forbidden characters.
    """
    reader = BlockReader(head, first_line, events)
    blocks = tuple(reader.iterate_blocks())
    raise_for_problems(reader.problems)
    return blocks


def join_surrogate_pairs(text: str) -> str:
    r"""Replace each surrogate pair by the character that it encodes.

    JSON writes characters above U+FFFF as two escapes, such as \ud83d\udd0e, and YAML is meant to read JSON.
    The parsers leave the two halves as they are. A half without its partner stays and is reported.
    """
    return SURROGATE_PAIR_PATTERN.sub(
        lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text
    )


class BlockReader:
    """Build blocks from events in one pass, and collect problems such as duplicate keys."""

    def __init__(self, head: str, first_line: int, events: Iterator[YamlEvent]) -> None:
        self.lines, self.first_line, self.events = head.splitlines(keepends=True), first_line, events
        self.has_escapes = "\\" in head
        self.problems: list[TextProblem] = []
        self.flow_lines: list[int] = []
        self.depth = 0
        # Index of the line after the last value that was read. The end mark of a block collection cannot be
        # used for this, because it lies after the comments that follow the collection.
        self.end = 0

    def iterate_blocks(self) -> Iterator[YamlBlock]:
        at = 0
        for key, line, event in self.iterate_root():
            top = line - self.first_line
            while top > at and self.lines[top - 1].startswith("#"):
                top -= 1
            if top > at:
                yield YamlBlock(None, "", self.join_lines(at, top), self.first_line + at)
            value, flow_lines, at = self.read_value(event, key), tuple(self.flow_lines), self.end
            yield YamlBlock(key, value, self.join_lines(top, at), line, flow_lines)
            self.flow_lines.clear()
        if self.flow_lines:  # The head is {}: report the line of the braces, although there is no key.
            yield YamlBlock(None, "", "", self.first_line, tuple(self.flow_lines))
        elif at < len(self.lines):
            yield YamlBlock(None, "", self.join_lines(at, len(self.lines)), self.first_line + at)

    def join_lines(self, start: int, end: int) -> str:
        return "".join(self.lines[start:end])

    def get_line(self, event: YamlEvent) -> int:
        return self.first_line + int(event.start_mark.line)

    def iterate_root(self) -> Iterator[tuple[str, int, YamlEvent]]:
        for event in self.events:
            if isinstance(event, yaml.MappingStartEvent):
                yield from self.iterate_pairs(event, "")
            elif isinstance(event, yaml.NodeEvent):
                raise_for_problems([TextProblem("", self.get_line(event), NO_KEYS_MESSAGE)])
            elif getattr(event, "explicit", False):
                raise AmbiguousYaml

    def iterate_pairs(self, start: YamlEvent, field: str) -> Iterator[tuple[str, int, YamlEvent]]:
        """Yield each key with its line and the first event of its value.

        The caller must read the value before it requests the next pair.
        """
        keys: set[str] = set()
        for event in self.iterate_entries(start):
            if self.depth == 1 and (start.flow_style or event.start_mark.column):
                raise_for_problems([TextProblem("", self.get_line(start), KEY_PER_LINE_MESSAGE)])
            line, key = self.get_line(event), self.read_key(event, field)
            if not isinstance(event, yaml.ScalarEvent):
                self.problems.append(TextProblem(field, line, "A key must be text, not a list or more keys."))
            elif key in keys:
                self.problems.append(
                    TextProblem(field or key, line, f'The key "{key}" appears twice. Remove one of them.')
                )
            keys.add(key)
            yield key, line, next(self.events)

    def iterate_entries(self, start: YamlEvent) -> Iterator[YamlEvent]:
        """Yield the first event of each entry of a collection.

        The caller must read the other events of an entry before it requests the next entry.
        """
        self.depth += 1
        if start.anchor or start.tag or self.depth > MAX_DEPTH:
            raise AmbiguousYaml
        if start.flow_style:
            self.flow_lines.append(self.get_line(start))
        for event in self.events:
            if isinstance(event, yaml.CollectionEndEvent):
                break
            yield event
        if start.flow_style:
            self.end = get_next_line(event)
        self.depth -= 1

    def read_key(self, event: YamlEvent, field: str) -> str:
        if isinstance(event, yaml.ScalarEvent):
            return self.read_text(event, field)
        if isinstance(event, yaml.AliasEvent):
            raise AmbiguousYaml
        # The key is a collection, which the caller reports as a problem. Skip its events up to MAX_DEPTH.
        depth = self.depth + 1
        while self.depth < depth <= MAX_DEPTH:
            event = next(self.events)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise AmbiguousYaml
        return ""

    def read_value(self, event: YamlEvent, field: str) -> YamlValue:
        if isinstance(event, yaml.ScalarEvent):
            text = self.read_text(event, field)
            return "" if text in NULL_SCALARS and not event.style else text
        if isinstance(event, yaml.MappingStartEvent):
            return {key: self.read_value(value, field) for key, _, value in self.iterate_pairs(event, field)}
        if isinstance(event, yaml.SequenceStartEvent):
            return [self.read_value(item, field) for item in self.iterate_entries(event)]
        raise AmbiguousYaml

    def read_text(self, event: YamlEvent, field: str) -> str:
        if event.anchor or event.tag:
            raise AmbiguousYaml
        self.end = get_next_line(event)
        text = str(event.value)
        if self.has_escapes:
            text = join_surrogate_pairs(text)
        # An escape such as \x00 can produce a forbidden character, so the value must be checked too.
        if self.has_escapes:
            self.problems += find_character_problems(text.replace("\n", " "), field, self.get_line(event))
        return text
