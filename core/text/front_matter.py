"""Read YAML front matter safely: every scalar is text, and every line of the source stays reachable."""

from __future__ import annotations

import re
from contextlib import suppress

import yaml

from core.text.problems import (
    MAX_PROBLEMS,
    REFUSED,
    FrontMatterError,
    Problem,
    character_problems,
    refuse,
)
from core.text.yaml_blocks import Block, Value, read_blocks
from core.text.yaml_errors import event_problems
from core.text.yaml_events import libyaml_events, pyyaml_events

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


def newlines(text: str) -> str:
    # One sign is sooner looked for than two, and most texts have none.
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


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
        return read_blocks(head, first_line, libyaml_events(head))
    # Events come from a loop, values from recursion: depth is judged before anything can recurse.
    refuse(event_problems(head, first_line))
    return read_blocks(head, first_line, pyyaml_events(head))
