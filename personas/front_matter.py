"""Read YAML front matter safely: every scalar is text, and every line of the source stays reachable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import yaml

from personas.text_problems import (
    MAX_PROBLEMS,
    REFUSED,
    FrontMatterError,
    Problem,
    character_problems,
    refuse,
)
from personas.yaml_nodes import Event, Node, compose, libyaml_events, pyyaml_events
from personas.yaml_refusals import event_problems

__all__ = [
    "BOM",
    "MAX_PROBLEMS",
    "REFUSED",
    "REFUSED_IN_HEAD",
    "Block",
    "FrontMatterError",
    "Problem",
    "Value",
    "character_problems",
    "join",
    "load",
    "newlines",
    "refuse",
    "split",
]

MAX_BYTES = 16 * 1024
BOM, FENCE = "\ufeff", "---"
OPENING, CLOSING = re.compile(r"---[ \t]*(?=\n|\Z)"), re.compile(r"\n---[ \t]*(?=\n|\Z)")
UNCLOSED = "The front matter opens with --- but no line of --- closes it."
# YAML breaks lines at the first two and skips the third, so line numbers and slices would drift.
REFUSED_IN_HEAD = r"\u2028\u2029\ufeff"
NULLS = ("~", "null", "Null", "NULL")

Value: TypeAlias = "str | list[Value] | dict[str, Value]"


class Block(NamedTuple):
    """A top-level key with the comments right above it, or (key None) blank and comment lines of nobody."""

    key: str | None
    value: Value
    source: str
    line: int
    flow_lines: tuple[int, ...] = ()  # Where a bracket or a brace opens a list or more keys.


def newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split(text: str) -> tuple[str, str, int]:
    """Part head from body and say where it begins; a blank line between and a final newline are neither's."""
    text = newlines(text.removeprefix(BOM))
    opened = OPENING.match(text)
    if not opened:
        return "", text.removesuffix("\n"), 1
    closed = CLOSING.search(text, opened.end())
    if not closed:
        raise FrontMatterError([Problem("", 1, UNCLOSED)])
    rest = text[closed.end() :]
    is_blank = rest == "\n" or rest.startswith("\n\n")
    body_line = text.count("\n", 0, closed.start()) + 3 + is_blank
    head = text[opened.end() + 1 : closed.start() + 1]
    return head, rest[1 + is_blank :].removesuffix("\n"), body_line


def join(head: str, body: str) -> str:
    """Undo split; a body that could pass for a head or a byte order mark goes behind an empty head."""
    tail = f"{body}\n" if body else ""
    if not head and not body.startswith((FENCE, BOM)):
        return tail
    return f"{FENCE}\n{head}{FENCE}\n" + (f"\n{tail}" if tail else "")


def load(head: str, first_line: int = 1) -> tuple[Block, ...]:
    """Return blocks whose sources join up to the head, or raise with every reason found."""
    if len(head.encode(errors="surrogatepass")) > MAX_BYTES:
        refuse([Problem("", first_line, f"The front matter is longer than {MAX_BYTES // 1024} KiB.")])
    refuse(character_problems(head, "", first_line, REFUSED_IN_HEAD))
    # The quick reader may only agree: whatever it minds, the slow one judges and puts into words.
    with suppress(ValueError, yaml.YAMLError):
        return blocks(head, first_line, libyaml_events(head))
    # Events come from a loop, nodes from recursion: depth is judged before anything can recurse.
    refuse(event_problems(head, first_line))
    return blocks(head, first_line, pyyaml_events(head))


def blocks(head: str, first_line: int, events: Iterator[Event]) -> tuple[Block, ...]:
    root = compose(events)
    if root and (reason := _root_reason(root)):
        refuse([Problem("", first_line + root.line, reason)])
    builder = _Builder(head, first_line)
    found = tuple([block for block in builder.blocks(root) if block.source or block.flow_lines])
    refuse(builder.problems)
    return found


def _root_reason(root: Node) -> str:
    if root.kind != "keys":
        return 'The front matter must be lines of "key: value", not a list or a single value.'
    if root.parts and (root.is_flow or any(key.column for key, _ in root.pairs())):
        return "Write one key per line, at the start of the line, without braces around them."
    return ""


class _Builder:
    """Turns nodes into blocks and notes what only nodes can show."""

    def __init__(self, head: str, first_line: int) -> None:
        self.lines, self.first_line = head.splitlines(keepends=True), first_line
        self.has_escapes = "\\" in head
        self.problems: list[Problem] = []

    def blocks(self, root: Node | None) -> Iterator[Block]:
        at = 0
        for key, line, node in self.pairs(root, ""):
            top = line - self.first_line
            while top > at and self.lines[top - 1].startswith("#"):
                top -= 1
            yield Block(None, "", self.source(at, top), self.first_line + at)
            at = node.end
            value, flows = self.value(node, key), tuple(self.flow_lines(node))
            yield Block(key, value, self.source(top, at), line, flows)
        if root and root.is_flow:  # An empty pair of braces has no keys, but must not pass for a comment.
            yield Block(None, "", "", self.first_line, tuple(self.flow_lines(root)))
        else:
            yield Block(None, "", self.source(at, None), self.first_line + at)

    def source(self, start: int, end: int | None) -> str:
        return "".join(self.lines[start:end])

    def flow_lines(self, node: Node) -> Iterator[int]:
        if node.is_flow:
            yield self.first_line + node.line
        for part in node.parts:
            yield from self.flow_lines(part)

    def pairs(self, mapping: Node | None, field: str) -> Iterator[tuple[str, int, Node]]:
        seen: set[str] = set()
        for node, value in mapping.pairs() if mapping else ():
            line = self.first_line + node.line
            key = self.text(node, field)
            if node.kind != "text":
                self.problems.append(Problem(field, line, "A key must be text, not a list or more keys."))
            elif key in seen:
                self.problems.append(Problem(field or key, line, f'The key "{key}" appears twice; keep one.'))
            seen.add(key)
            yield key, line, value

    def value(self, node: Node, field: str) -> Value:
        if node.kind == "keys":
            return {key: self.value(value, field) for key, _, value in self.pairs(node, field)}
        if node.kind == "list":
            return [self.value(item, field) for item in node.parts]
        text = self.text(node, field)
        return "" if node.is_plain and text in NULLS else text

    def text(self, node: Node, field: str) -> str:
        # An escape can smuggle in what the source check refused, so look at what it stands for.
        if self.has_escapes:
            line = self.first_line + node.line
            self.problems += character_problems(node.text.replace("\n", " "), field, line)
        return node.text
