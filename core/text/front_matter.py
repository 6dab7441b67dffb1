"""Parse YAML front matter safely: every scalar is text, and source lines and line numbers are kept.

The head is the YAML between the two --- lines at the start of a text; the body is the rest of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import yaml
from frontmatter.default_handlers import BaseHandler

from core.text.problems import (
    FORBIDDEN_RANGES,
    MAX_PROBLEMS,
    FrontMatterError,
    TextProblem,
    find_character_problems,
    raise_for_problems,
)
from core.text.yaml_blocks import YamlBlock, YamlValue, read_blocks
from core.text.yaml_events import MAX_DEPTH, parse_with_libyaml, parse_with_pyyaml

ALIAS_MESSAGE = "Anchors and aliases are not allowed. Put a value that starts with & or * in quotes."
EVENT_MESSAGES = {
    "anchor": ALIAS_MESSAGE,
    "tag": "Tags are not allowed. Put a value that starts with ! in quotes.",
    "explicit": "Only one block of keys is allowed. Remove the line that starts with --- or ...",
}
SYNTAX_HINTS = {
    "while scanning an alias": ALIAS_MESSAGE,
    "while scanning an anchor": ALIAS_MESSAGE,
    "mapping values are not allowed here": 'A value that contains ": " must be in quotes.',
    "could not find expected ':'": 'Every line must have the form "key: value".',
    "found character '\\t' that cannot start any token": "Tabs are not allowed here. Indent with spaces.",
}


def find_event_problems(head: str, first_line: int) -> Iterator[TextProblem]:
    depth, line = 0, first_line
    try:
        for event in parse_with_pyyaml(head):
            line = first_line + event.start_mark.line
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                yield TextProblem("", line, f"Keys and lists can be nested at most {MAX_DEPTH} levels deep.")
                return
            reasons = [reason for name, reason in EVENT_MESSAGES.items() if getattr(event, name, None)]
            yield from (TextProblem("", line, reason) for reason in reasons)
    except yaml.MarkedYAMLError as error:
        yield _build_syntax_problem(error, first_line)
    except (ValueError, OverflowError):  # PyYAML calls chr() on escapes such as \UFFFFFFFF.
        yield TextProblem("", line, "This line or a later one contains an invalid escape sequence.")


def _build_syntax_problem(error: yaml.MarkedYAMLError, first_line: int) -> TextProblem:
    context, problem = error.context or "", error.problem or ""
    # PyYAML reports an unclosed quote at the end of the text; report the line where the quote opens.
    mark = (error.context_mark if context.startswith("while scanning") else None) or error.problem_mark
    message = SYNTAX_HINTS.get(context) or SYNTAX_HINTS.get(problem) or f"This is not valid YAML: {problem}."
    return TextProblem("", first_line + (mark.line if mark else 0), message)


__all__ = [
    "BOM",
    "FORBIDDEN_HEAD_RANGES",
    "FORBIDDEN_RANGES",
    "MAX_PROBLEMS",
    "FrontMatterError",
    "TextProblem",
    "YamlBlock",
    "YamlValue",
    "find_character_problems",
    "join_front_matter",
    "normalize_newlines",
    "parse_front_matter",
    "raise_for_problems",
    "split_front_matter",
]

MAX_HEAD_BYTES = 16 * 1024
BOM, FENCE = "\ufeff", "---"
UNCLOSED_MESSAGE = "The front matter starts with --- but has no closing --- line."
# YAML treats U+2028 and U+2029 as line breaks and skips U+FEFF, so line numbers would be wrong.
FORBIDDEN_HEAD_RANGES = r"\u2028\u2029\ufeff"


def normalize_newlines(text: str) -> str:
    # Most texts contain no \r, and searching for it is faster than two replacements.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


class StrictYAMLHandler(BaseHandler):
    """Handler for python-frontmatter that splits at lines of exactly three hyphens.

    Only the splitting of the library is used. `parse_front_matter` parses the head, because the parsers of
    the library lose line numbers and turn values into types other than text.
    """

    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = FENCE


HANDLER = StrictYAMLHandler()


def split_front_matter(text: str) -> tuple[str, str, int]:
    """Return the head, the body, and the number of the line where the body begins.

    A blank line between head and body and a final newline are part of neither of them.
    """
    text = normalize_newlines(text.removeprefix(BOM))
    if not HANDLER.detect(text):
        return "", text.removesuffix("\n"), 1
    try:
        head, rest = HANDLER.split(text)
    except ValueError as error:
        raise FrontMatterError([TextProblem("", 1, UNCLOSED_MESSAGE)]) from error
    is_blank = rest == "\n" or rest.startswith("\n\n")
    body_line = head.count("\n") + 2 + is_blank
    return head.removeprefix("\n"), rest[1 + is_blank :].removesuffix("\n"), body_line


def join_front_matter(head: str, body: str) -> str:
    """Join head and body, the inverse of `split_front_matter`.

    A body that begins with --- or a byte order mark gets an empty head, so that splitting returns it
    unchanged.
    """
    tail = f"{body}\n" if body else ""
    if not head and not body.startswith((FENCE, BOM)):
        return tail
    return f"{FENCE}\n{head}{FENCE}\n" + (f"\n{tail}" if tail else "")


def parse_front_matter(head: str, first_line: int = 1) -> tuple[YamlBlock, ...]:
    """Parse the head into blocks. Joining the `source` of all blocks gives the head again.

    `first_line` is the line number of the head. Raise FrontMatterError with all problems.
    """
    if len(head.encode(errors="surrogatepass")) > MAX_HEAD_BYTES:
        raise_for_problems(
            [TextProblem("", first_line, f"The front matter is longer than {MAX_HEAD_BYTES // 1024} KiB.")]
        )
    raise_for_problems(find_character_problems(head, "", first_line, FORBIDDEN_HEAD_RANGES))
    # libyaml is the fast path. If it fails, PyYAML parses the head again and provides the messages.
    with suppress(ValueError, yaml.YAMLError):
        return read_blocks(head, first_line, parse_with_libyaml(head))
    # This checks the nesting depth in a loop; read_blocks recurses into values, so the check must come first.
    raise_for_problems(find_event_problems(head, first_line))
    return read_blocks(head, first_line, parse_with_pyyaml(head))
