"""Text diff by line and by word (patience diff), with bounded running time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from core.text.patience import diff_sequences

WORD_PATTERN = re.compile(r"\w+|\s+|[^\w\s]")
# A line with more words is marked as changed as a whole, because its word diff would not be readable.
MAX_WORDS = 400


@dataclass(frozen=True)
class DiffSpan:
    """A part of a line that is changed or unchanged."""

    text: str
    is_changed: bool = False


@dataclass(frozen=True)
class DiffLine:
    """A line of the older text, the newer text or both.

    `before` and `after` are its line numbers in the older and the newer text; None if it is not part of it.
    """

    kind: Literal["same", "removed", "added"]
    spans: tuple[DiffSpan, ...]
    before: int | None = None
    after: int | None = None

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


def diff_lines(before: str, after: str) -> list[DiffLine]:
    """Return all lines of both texts in reading order. In a changed block, removed lines come first."""
    # Patience diff, because difflib needs minutes for a few thousand equal lines.
    old, new = before.split("\n"), after.split("\n")
    lines: list[DiffLine] = []
    for kind, i1, i2, j1, j2 in diff_sequences(old, new):
        if kind == "equal":
            lines += [
                DiffLine("same", (DiffSpan(old[i1 + at]),), i1 + at + 1, j1 + at + 1) for at in range(i2 - i1)
            ]
        else:
            lines += diff_changed_lines(old[i1:i2], new[j1:j2], i1, j1)
    return lines


def pair_lines(lines: Sequence[DiffLine]) -> Iterator[tuple[DiffLine | None, DiffLine | None]]:
    """Yield the lines of a diff side by side: the older line, and the newer one in its place."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in lines:
        if line.kind == "removed" and not added:
            removed.append(line)
            continue
        if line.kind == "added":
            added.append(line)
            continue
        yield from zip_longest(removed, added)
        removed, added = ([line], []) if line.kind == "removed" else ([], [])
        if line.kind == "same":
            yield line, line
    yield from zip_longest(removed, added)


def diff_changed_lines(old: Sequence[str], new: Sequence[str], first: int, second: int) -> Iterator[DiffLine]:
    """Yield the removed and then the added lines of one changed block.

    The first removed line is compared with the first added line by word, and so on. `first` and `second` are
    the indexes of the block in the older and the newer text, counted from 0.
    """
    pairs = [diff_words(one, other) for one, other in zip(old, new, strict=False)]
    for at, text in enumerate(old):
        spans = pairs[at][0] if at < len(pairs) else (DiffSpan(text, is_changed=True),)
        yield DiffLine("removed", spans, before=first + at + 1)
    for at, text in enumerate(new):
        spans = pairs[at][1] if at < len(pairs) else (DiffSpan(text, is_changed=True),)
        yield DiffLine("added", spans, after=second + at + 1)


def diff_words(before: str, after: str) -> tuple[tuple[DiffSpan, ...], tuple[DiffSpan, ...]]:
    """Return the spans of both lines. Words that the other line does not have are marked as changed."""
    old, new = WORD_PATTERN.findall(before), WORD_PATTERN.findall(after)
    if len(old) > MAX_WORDS or len(new) > MAX_WORDS:
        return (DiffSpan(before, is_changed=True),), (DiffSpan(after, is_changed=True),)
    left: list[DiffSpan] = []
    right: list[DiffSpan] = []
    for kind, i1, i2, j1, j2 in diff_sequences(old, new):
        is_changed = kind != "equal"
        if i2 > i1:
            left.append(DiffSpan("".join(old[i1:i2]), is_changed))
        if j2 > j1:
            right.append(DiffSpan("".join(new[j1:j2]), is_changed))
    return tuple(left), tuple(right)
