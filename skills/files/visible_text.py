"""Make hidden characters visible: split text into plain chunks and glyphs that label hidden characters."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, islice
from typing import NamedTuple

from django.utils.translation import gettext as _

from skills.scanning.characters import HIDDEN_CHARACTER_FINDERS
from skills.scanning.prefilter import find_hidden_characters

# A run of hidden characters may be as long as the file. After this many glyphs, the rest is only counted.
MAX_GLYPHS = 64


class Glyph(NamedTuple):
    """Label and tooltip drawn in place of a hidden character."""

    label: str
    title: str


class VisibleText:
    """A text with the spans of its hidden characters.

    `text` must be the complete text of the file, because the neighbours of a character decide whether it
    counts as hidden or is legitimate.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        # Most texts have no hidden characters, and one quick search avoids running all finders on them.
        finders = HIDDEN_CHARACTER_FINDERS if find_hidden_characters(text) else ()
        self.hidden_spans = sorted({(hit.start, hit.end) for find in finders for hit in find(text)})
        self.hidden_starts = [start for start, _end in self.hidden_spans]

    def split_chunks(self, start: int = 0, end: int | None = None) -> Iterator[str | Glyph]:
        """Yield the text from `start` to `end` in chunks, with hidden characters replaced by glyphs."""
        position, last = start, len(self.text) if end is None else end
        for index in range(max(0, bisect_right(self.hidden_starts, start) - 1), len(self.hidden_spans)):
            low, high = self.hidden_spans[index]
            if low >= last:
                break
            if high > position:
                yield from [self.text[position:low]] if low > position else []
                yield from build_glyphs(self.text[max(low, position) : min(high, last)])
                position = min(high, last)
        if position < last:
            yield self.text[position:last]


def build_glyphs(run: str) -> Iterator[Glyph]:
    """Yield the glyphs for a run of hidden characters: one for each group of equal adjacent characters.

    If there are more than MAX_GLYPHS groups, a last glyph gives the number of remaining characters.
    """
    groups = ((character, len(list(same))) for character, same in groupby(run))
    drawn = 0
    for character, count in islice(groups, MAX_GLYPHS):
        drawn += count
        yield build_glyph(character, count)
    if left := len(run) - drawn:
        yield Glyph(f"+{left:,}", _("%(count)s more hidden characters") % {"count": f"{left:,}"})


def build_glyph(character: str, count: int = 1) -> Glyph:
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "") or "CONTROL CHARACTER"
    times = f" ×{count:,}" if count > 1 else ""
    return Glyph(f"{code}{times}", f"{code} {name}{times}")
