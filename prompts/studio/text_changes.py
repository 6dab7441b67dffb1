"""What a draft changes in the text: which characters are new, and how many lines are gone where; pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from patiencediff import PatienceSequenceMatcher

# Beyond this nobody looks for single lines, and looking takes too long while somebody types.
LONGEST = 400_000
Range = tuple[int, int]


@dataclass(frozen=True)
class Edits:
    """Stretches of the newer text that the older has not, in order; and lines that fell away, by offset."""

    ranges: Sequence[Range] = ()
    gone: dict[int, int] = field(default_factory=dict)

    def cut(self, start: int, end: int) -> list[tuple[int, int, bool]]:
        """These characters in pieces, each either new or not."""
        pieces: list[tuple[int, int, bool]] = []
        at = start
        for low, high in self.ranges[self._first(start) :]:
            if low >= end:
                break
            if low > at:
                pieces.append((at, low, False))
            pieces.append((max(low, at), min(high, end), True))
            at = min(high, end)
        return [*pieces, (at, end, False)] if at < end else pieces

    def _first(self, start: int) -> int:
        """The first range that ends behind this offset."""
        return bisect_right([high for _, high in self.ranges], start)


NONE = Edits()


def edits_between(before: str, after: str) -> Edits:
    """Whole lines, for a line is what people read."""
    if before == after or len(before) + len(after) > LONGEST:
        return NONE
    old, new = before.split("\n"), after.split("\n")
    offsets = [0, *accumulate(len(line) + 1 for line in new)]
    ranges: list[Range] = []
    gone: dict[int, int] = {}
    for kind, i1, i2, j1, j2 in PatienceSequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            continue
        if any(line.strip() for line in new[j1:j2]):
            ranges.append((offsets[j1], min(offsets[j2], len(after))))
        lost = sum(bool(line.strip()) for line in old[i1:i2]) - sum(bool(line.strip()) for line in new[j1:j2])
        if lost > 0:
            gone[min(offsets[j1], len(after))] = lost
    return Edits(ranges, gone)
