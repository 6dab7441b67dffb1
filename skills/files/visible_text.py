"""A text as pieces that can be seen and marks for what cannot; pure."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, islice
from typing import NamedTuple

from django.utils.translation import gettext as _

from skills.scanning.characters import HIDDEN_CHARACTER_FINDERS

# A hidden message may be as long as the file; its beginning says enough, the rest is counted.
MAX_GLYPHS = 64


class Glyph(NamedTuple):
    """What is drawn in the place of a character nobody sees."""

    label: str
    title: str


class VisibleText:
    """A whole text, since only its neighbours tell whether a character hides or is at work."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.hidden = sorted(
            {(hit.start, hit.end) for find in HIDDEN_CHARACTER_FINDERS for hit in find(text)}
        )
        self.starts = [start for start, _end in self.hidden]

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[str | Glyph]:
        """A stretch of the text, in order; what hides in it as glyphs."""
        at, last = start, len(self.text) if end is None else end
        for place in range(max(0, bisect_right(self.starts, start) - 1), len(self.hidden)):
            low, high = self.hidden[place]
            if low >= last:
                break
            if high > at:
                yield from [self.text[at:low]] if low > at else []
                yield from build_glyphs(self.text[max(low, at) : min(high, last)])
                at = min(high, last)
        if at < last:
            yield self.text[at:last]


def build_glyphs(run: str) -> Iterator[Glyph]:
    """One mark for each character of a run; the same one many times in a row is told once."""
    groups = ((character, len(list(same))) for character, same in groupby(run))
    shown = 0
    for character, count in islice(groups, MAX_GLYPHS):
        shown += count
        yield build_glyph(character, count)
    if left := len(run) - shown:
        yield Glyph(f"+{left:,}", _("%(count)s more characters that nobody sees") % {"count": f"{left:,}"})


def build_glyph(character: str, count: int = 1) -> Glyph:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "") or "CONTROL CHARACTER"
    times = f" ×{count:,}" if count > 1 else ""
    return Glyph(f"{code}{times}", f"{code} {name}{times}")
