"""Read YAML front matter safely: every scalar is text, and every line of the source stays reachable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import yaml
from frontmatter.default_handlers import BaseHandler

from core.text.problems import (
    MAX_PROBLEMS,
    REFUSED,
    FrontMatterError,
    Problem,
    character_problems,
    refuse,
)
from core.text.yaml_blocks import Block, Value, read_blocks
from core.text.yaml_events import MAX_DEPTH, libyaml_events, pyyaml_events

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


def event_problems(head: str, first_line: int) -> Iterator[Problem]:
    depth, line = 0, first_line
    try:
        for event in pyyaml_events(head):
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
UNCLOSED = "The front matter opens with --- but no line of --- closes it."
# YAML breaks lines at the first two and skips the third, so line numbers and slices would drift.
REFUSED_IN_HEAD = r"\u2028\u2029\ufeff"


def newlines(text: str) -> str:
    # One sign is sooner looked for than two, and most texts have none.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class StrictYAMLHandler(BaseHandler):
    """python-frontmatter handler for splitting: fences of exactly three hyphens.

    `load` below reads the head, because the library's own readers keep neither lines nor text values.
    """

    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = FENCE


HANDLER = StrictYAMLHandler()


def split(text: str) -> tuple[str, str, int]:
    """Part head from body and say where it begins; a blank line between and a final newline are neither's."""
    text = newlines(text.removeprefix(BOM))
    if not HANDLER.detect(text):
        return "", text.removesuffix("\n"), 1
    try:
        head, rest = HANDLER.split(text)
    except ValueError as error:
        raise FrontMatterError([Problem("", 1, UNCLOSED)]) from error
    is_blank = rest == "\n" or rest.startswith("\n\n")
    body_line = head.count("\n") + 2 + is_blank
    return head.removeprefix("\n"), rest[1 + is_blank :].removesuffix("\n"), body_line


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
        return read_blocks(head, first_line, libyaml_events(head))
    # Events come from a loop, values from recursion: depth is judged before anything can recurse.
    refuse(event_problems(head, first_line))
    return read_blocks(head, first_line, pyyaml_events(head))
