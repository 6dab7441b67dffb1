"""Validation problems of a text, with line numbers, and the check for forbidden characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

MAX_PROBLEMS = 20
# Control characters, surrogates and noncharacters. Without this check the database or an encoder would reject
# them later, with a less helpful message.
FORBIDDEN_RANGES = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
# Tab, line feed and printable ASCII are always allowed and make up most of a text. PLAIN_BYTE_TABLE maps them
# to 1 and all other bytes to 0.
PLAIN_BYTES = bytes([0x09, 0x0A, *range(0x20, 0x7F)])
PLAIN_BYTE_TABLE = bytes([byte in PLAIN_BYTES for byte in range(256)])


@dataclass(frozen=True)
class TextProblem:
    field: str  # Empty if the problem concerns the entire front matter.
    line: int
    message: str


class FrontMatterError(ValueError):
    def __init__(self, problems: Iterable[TextProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"line {problem.line}: {problem.message}" for problem in self.problems))


def raise_for_problems(problems: Iterable[TextProblem]) -> None:
    if first_few := tuple(islice(problems, MAX_PROBLEMS)):
        raise FrontMatterError(first_few)


def find_character_problems(text: str, field: str, line: int, extra: str = "") -> Iterator[TextProblem]:
    unusual = find_unusual_characters(text)
    if not unusual or not re.search(f"[{FORBIDDEN_RANGES}{extra}]", unusual):
        return
    for match in re.finditer(f"[{FORBIDDEN_RANGES}{extra}]", text):
        message = f"The character U+{ord(match.group()):04X} is not allowed."
        yield TextProblem(field, line + text.count("\n", 0, match.start()), message)


def find_unusual_characters(text: str) -> str:
    """Return the text without the characters in PLAIN_BYTES.

    It uses `bytes.translate`, which is much faster than a regular expression.
    """
    data = text.encode(errors="surrogatepass")
    if b"\0" not in data.translate(PLAIN_BYTE_TABLE):
        return ""
    return data.translate(None, PLAIN_BYTES).decode(errors="surrogatepass")
