"""Why a text is refused: problems by line, and the characters that no text of ours may hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

MAX_PROBLEMS = 20
# Controls, surrogate halves and noncharacters: a database or an encoder would refuse them later, less kindly.
REFUSED = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
# Tab, line feed and printable ASCII, which is nearly all of most texts and never refused.
PLAIN = bytes([0x09, 0x0A, *range(0x20, 0x7F)])


@dataclass(frozen=True)
class Problem:
    field: str  # Empty when the front matter as a whole is meant.
    line: int
    message: str


class FrontMatterError(ValueError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"line {problem.line}: {problem.message}" for problem in self.problems))


def refuse(problems: Iterable[Problem]) -> None:
    if first_few := tuple(islice(problems, MAX_PROBLEMS)):
        raise FrontMatterError(first_few)


def character_problems(text: str, field: str, line: int, extra: str = "") -> Iterator[Problem]:
    refused = re.compile(f"[{REFUSED}{extra}]")
    for found in refused.finditer(text) if refused.search(unusual_characters(text)) else ():
        message = f"The character U+{ord(found.group()):04X} is not allowed."
        yield Problem(field, line + text.count("\n", 0, found.start()), message)


def unusual_characters(text: str) -> str:
    """What is left without the plain ones: a quick answer where a pattern would look at each character."""
    return text.encode(errors="surrogatepass").translate(None, PLAIN).decode(errors="surrogatepass")
