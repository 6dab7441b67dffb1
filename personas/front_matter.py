"""Read YAML front matter safely: every scalar is text, and every line of the source stays reachable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import yaml

MAX_BYTES, MAX_DEPTH, MAX_PROBLEMS = 16 * 1024, 20, 20
BOM, FENCE = "\ufeff", "---"

# Controls, surrogate halves and noncharacters: a database or an encoder would refuse them later, less kindly.
REFUSED = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
# YAML breaks lines at the first two and skips the third, so line numbers and slices would drift.
REFUSED_IN_HEAD = r"\u2028\u2029\ufeff"
NULLS = ("~", "null", "Null", "NULL")
NO_ALIAS = "Anchors and aliases are not allowed; put a value that begins with & or * in quotes."
REFUSALS = {
    "anchor": NO_ALIAS,
    "tag": "Tags are not allowed; put a value that begins with ! in quotes.",
    "explicit": "Only one block of keys is allowed, so no line may begin with --- or ... here.",
}
HINTS = {
    "while scanning an alias": NO_ALIAS,
    "while scanning an anchor": NO_ALIAS,
    "mapping values are not allowed here": 'A value that contains ": " must be in quotes.',
    "could not find expected ':'": 'Every line needs the shape "key: value".',
    "found character '\\t' that cannot start any token": "Indent with spaces; a tab is not allowed here.",
}

Value: TypeAlias = "str | list[Value] | dict[str, Value]"


@dataclass(frozen=True)
class Problem:
    field: str  # Empty when the front matter as a whole is meant.
    line: int
    message: str


class FrontMatterError(ValueError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"line {problem.line}: {problem.message}" for problem in self.problems))


@dataclass(frozen=True)
class Block:
    """A top-level key with the comments right above it, or (key None) blank and comment lines of nobody."""

    key: str | None
    value: Value
    source: str
    line: int


def newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split(text: str) -> tuple[str, str, int]:
    """Part head from body and say where it begins; a blank line between and a final newline are neither's."""
    lines = newlines(text.removeprefix(BOM)).split("\n")
    fences = (number for number, line in enumerate(lines) if line.rstrip(" \t") == FENCE)
    if next(fences, None) != 0:
        return "", "\n".join(lines).removesuffix("\n"), 1
    close = next(fences, 0)
    if not close:
        refuse([Problem("", 1, "The front matter opens with --- but no line of --- closes it.")])
    start = close + 1 + (lines[close + 1 : close + 2] == [""])
    head = "".join(f"{line}\n" for line in lines[1:close])
    return head, "\n".join(lines[start:]).removesuffix("\n"), start + 1


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
    # Events come from a loop, nodes from recursion: depth is judged before anything can recurse.
    refuse(_event_problems(head, first_line))
    root = yaml.compose(head, Loader=yaml.BaseLoader)
    if root and (reason := _root_reason(root)):
        refuse([Problem("", first_line + root.start_mark.line, reason)])
    builder = _Builder(head, first_line)
    blocks = tuple(filter(lambda block: block.source, builder.blocks(root)))
    refuse(builder.problems)
    return blocks


def refuse(problems: Iterable[Problem]) -> None:
    if first_few := tuple(islice(problems, MAX_PROBLEMS)):
        raise FrontMatterError(first_few)


def character_problems(text: str, field: str, line: int, extra: str = "") -> Iterator[Problem]:
    for found in re.finditer(f"[{REFUSED}{extra}]", text):
        message = f"The character U+{ord(found.group()):04X} is not allowed."
        yield Problem(field, line + text.count("\n", 0, found.start()), message)


def _event_problems(head: str, first_line: int) -> Iterator[Problem]:
    depth, line = 0, first_line
    try:
        for event in yaml.parse(head, Loader=yaml.BaseLoader):
            line = first_line + event.start_mark.line
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                yield Problem("", line, f"Keys and lists are nested more than {MAX_DEPTH} deep.")
                return
            reasons = [reason for name, reason in REFUSALS.items() if getattr(event, name, None)]
            yield from (Problem("", line, reason) for reason in reasons)
    except yaml.MarkedYAMLError as error:
        yield _syntax_problem(error, first_line)
    except (ValueError, OverflowError):  # PyYAML lets chr() stumble over an escape such as \UFFFFFFFF.
        yield Problem("", line, "An escape here or below does not stand for any character.")


def _syntax_problem(error: yaml.MarkedYAMLError, first_line: int) -> Problem:
    context, problem = error.context or "", error.problem or ""
    # A quote left open is noticed at the end; the person wants the line where it began.
    mark = (error.context_mark if context.startswith("while scanning") else None) or error.problem_mark
    message = HINTS.get(context) or HINTS.get(problem) or f"This is not valid YAML: {problem}."
    return Problem("", first_line + (mark.line if mark else 0), message)


def _root_reason(root: yaml.Node) -> str:
    if not isinstance(root, yaml.MappingNode):
        return 'The front matter must be lines of "key: value", not a list or a single value.'
    if root.value and (root.flow_style or any(key.start_mark.column for key, _ in root.value)):
        return "Write one key per line, at the start of the line, without braces around them."
    return ""


def _end_line(node: yaml.Node) -> int:
    """The line after the node; a block collection's own mark lies past the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end_line(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.line) + bool(node.end_mark.column)


class _Builder:
    """Turns nodes into blocks and notes what only nodes can show."""

    def __init__(self, head: str, first_line: int) -> None:
        self.lines, self.first_line = head.splitlines(keepends=True), first_line
        self.problems: list[Problem] = []

    def blocks(self, root: yaml.Node | None) -> Iterator[Block]:
        at = 0
        for key, line, node in self.pairs(root, ""):
            top = line - self.first_line
            while top > at and self.lines[top - 1].startswith("#"):
                top -= 1
            yield Block(None, "", "".join(self.lines[at:top]), self.first_line + at)
            at = _end_line(node)
            yield Block(key, self.value(node, key), "".join(self.lines[top:at]), line)
        if at or not root:  # An empty pair of braces is a root without keys; it must not pass for a comment.
            yield Block(None, "", "".join(self.lines[at:]), self.first_line + at)

    def pairs(self, mapping: yaml.Node | None, field: str) -> Iterator[tuple[str, int, yaml.Node]]:
        seen: set[str] = set()
        for node, value in mapping.value if mapping else ():
            line = self.first_line + node.start_mark.line
            key = self.text(node, field)
            if not isinstance(node, yaml.ScalarNode):
                self.problems.append(Problem(field, line, "A key must be text, not a list or more keys."))
            elif key in seen:
                self.problems.append(Problem(field or key, line, f'The key "{key}" appears twice; keep one.'))
            seen.add(key)
            yield key, line, value

    def value(self, node: yaml.Node, field: str) -> Value:
        if isinstance(node, yaml.MappingNode):
            return {key: self.value(value, field) for key, _, value in self.pairs(node, field)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, field) for item in node.value]
        text = self.text(node, field)
        return "" if text in NULLS and not getattr(node, "style", None) else text

    def text(self, node: yaml.Node, field: str) -> str:
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        # An escape can smuggle in what the source check refused, so look at what it stands for.
        line = self.first_line + node.start_mark.line
        self.problems += character_problems(text.replace("\n", " "), field, line)
        return text
