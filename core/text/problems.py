"""Why a text is refused: problems by line, and the characters that no text of ours may hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

MAX_PROBLEMS = 20
# Controls, surrogate halves and noncharacters: a database or an encoder would refuse them later, less kindly.
FORBIDDEN_RANGES = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
# Tab, line feed and printable ASCII: nearly all of most texts, and never refused. The table tells them from
# the rest.
PLAIN_BYTES = bytes([0x09, 0x0A, *range(0x20, 0x7F)])
PLAIN_BYTE_TABLE = bytes([byte in PLAIN_BYTES for byte in range(256)])


@dataclass(frozen=True)
class TextProblem:
    field: str  # Empty when the front matter as a whole is meant.
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
    for found in re.finditer(f"[{FORBIDDEN_RANGES}{extra}]", text):
        message = f"The character U+{ord(found.group()):04X} is not allowed."
        yield TextProblem(field, line + text.count("\n", 0, found.start()), message)


def find_unusual_characters(text: str) -> str:
    """What is left without the plain ones: far sooner known than a pattern looks at each character."""
    data = text.encode(errors="surrogatepass")
    if b"\0" not in data.translate(PLAIN_BYTE_TABLE):
        return ""
    return data.translate(None, PLAIN_BYTES).decode(errors="surrogatepass")
