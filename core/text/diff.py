"""Text diff by line and by word (patience diff), with bounded running time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from patiencediff import PatienceSequenceMatcher

WORD_PATTERN = re.compile(r"\w+|\s+|[^\w\s]")
# A longer line is marked as changed without comparing words: such a word diff is not readable.
MAX_WORDS = 400


@dataclass(frozen=True)
class DiffSpan:
    """A part of a line that is changed or unchanged."""

    text: str
    is_changed: bool = False


@dataclass(frozen=True)
class DiffLine:
    """A line of the older text, the newer text or both, with its line numbers."""

    kind: Literal["same", "removed", "added"]
    spans: tuple[DiffSpan, ...]
    before: int | None = None
    after: int | None = None

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


def diff_lines(before: str, after: str) -> list[DiffLine]:
    """Return every line of both texts in reading order; removed lines come before added ones."""
    # Patience diff, because difflib needs minutes for a few thousand equal lines.
    old, new = before.split("\n"), after.split("\n")
    lines: list[DiffLine] = []
    for kind, i1, i2, j1, j2 in PatienceSequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            lines += [
                DiffLine("same", (DiffSpan(old[i1 + at]),), i1 + at + 1, j1 + at + 1) for at in range(i2 - i1)
            ]
        else:
            lines += diff_changed_lines(old[i1:i2], new[j1:j2], i1, j1)
    return lines


def diff_changed_lines(old: Sequence[str], new: Sequence[str], first: int, second: int) -> Iterator[DiffLine]:
    """Yield removed and added lines; lines at the same position are compared by word."""
    pairs = [diff_words(one, other) for one, other in zip(old, new, strict=False)]
    for at, text in enumerate(old):
        spans = pairs[at][0] if at < len(pairs) else (DiffSpan(text, is_changed=True),)
        yield DiffLine("removed", spans, before=first + at + 1)
    for at, text in enumerate(new):
        spans = pairs[at][1] if at < len(pairs) else (DiffSpan(text, is_changed=True),)
        yield DiffLine("added", spans, after=second + at + 1)


def diff_words(before: str, after: str) -> tuple[tuple[DiffSpan, ...], tuple[DiffSpan, ...]]:
    """Return the spans of both lines, with the words marked that the other line does not have."""
    old, new = WORD_PATTERN.findall(before), WORD_PATTERN.findall(after)
    if len(old) > MAX_WORDS or len(new) > MAX_WORDS:
        return (DiffSpan(before, is_changed=True),), (DiffSpan(after, is_changed=True),)
    left: list[DiffSpan] = []
    right: list[DiffSpan] = []
    for kind, i1, i2, j1, j2 in PatienceSequenceMatcher(None, old, new).get_opcodes():
        is_changed = kind != "equal"
        if i2 > i1:
            left.append(DiffSpan("".join(old[i1:i2]), is_changed))
        if j2 > j1:
            right.append(DiffSpan("".join(new[j1:j2]), is_changed))
    return tuple(left), tuple(right)
