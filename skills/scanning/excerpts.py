"""Where a finding stands and what may be shown of it: a short line, secrets covered, the unseen marked."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from skills.scanning.characters import visible
from skills.scanning.findings import Hit

LINE_END = re.compile(r"\r\n?|\n")
LINE_ENDS = ("\r", "\n")
# Of a long match its beginning says enough; a little around it says where to look.
SHOWN, AROUND, LONGEST = 48, 12, 240
COVER = "•••"

Span = tuple[int, int]


def positions(text: str) -> Callable[[int], tuple[int, int]]:
    """Offset → line and column, both from one; CRLF, LF and CR each end a line once."""
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]

    def place(offset: int) -> tuple[int, int]:
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    return place


def middle(secret: Span) -> Span:
    """What of a secret is covered: all of a short one, else all but enough to know it by."""
    start, end = secret
    length = end - start
    return (start, end) if length < 16 else (start + min(6, length // 4), end - 2)


def excerpt(text: str, hit: Hit, covered: Sequence[Span]) -> str:
    """A short line with the finding in it; `covered` are the parts of the text that no excerpt may show."""
    low, high = window(text, hit)
    shown = visible(uncovered(text, low, high, covered))
    is_cut = high < hit.end
    return clipped(" ".join(shown.split()), is_cut=is_cut)


def window(text: str, hit: Hit) -> Span:
    """The match and a little of its line; a secret counts whole, since its middle is covered."""
    low = hit.start
    while low > max(0, hit.start - AROUND) and text[low - 1] not in LINE_ENDS:
        low -= 1
    end = high = hit.end if hit.secret else min(hit.end, hit.start + SHOWN)
    if end == hit.end:
        while high < min(len(text), end + AROUND) and text[high] not in LINE_ENDS:
            high += 1
    return low, high


def uncovered(text: str, low: int, high: int, covered: Sequence[Span]) -> str:
    """A stretch of the text, with a cover over each secret in it."""
    said, at = [], low
    for start, end in covered:
        if end > at and start < high:
            said += [text[at:start], COVER]
            at = end
    return "".join([*said, text[at:high]])


def clipped(said: str, *, is_cut: bool) -> str:
    """At most so long, never ending inside a mark."""
    if len(said) <= LONGEST:
        return f"{said}…" if is_cut else said
    kept = said[:LONGEST]
    return f"{kept[: kept.rfind('⟦')] if kept.rfind('⟦') > kept.rfind('⟧') else kept}…"
