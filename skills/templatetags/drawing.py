"""Texts and differences as lines of safe HTML: numbered, what hides drawn as boxes, long ones bounded."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from personas.diffing import Line
from skills.glyphs import Glyph, Seen, glyph
from skills.scanning.excerpts import LINE_END

# Lines around a change that stay in view, and how long a quiet stretch must be to be folded.
AROUND, SHORTEST_FOLD = 3, 4
# A longer quiet stretch is only counted; and nobody reads more changed lines than this on one page.
LONGEST_FOLD, MOST_LINES = 400, 4_000


@dataclass(frozen=True)
class DrawnLine:
    """A line as it stands on a page."""

    kind: Literal["same", "removed", "added"]
    html: SafeString
    before: int | None = None
    after: int | None = None
    is_flagged: bool = False


@dataclass(frozen=True)
class Part:
    """Some lines in view, folded away, or too many to draw; `size` is how many they are."""

    kind: Literal["lines", "fold", "gap", "rest"]
    size: int
    lines: Sequence[DrawnLine] = ()


def drawn(pieces: Iterable[str | Glyph]) -> SafeString:
    """Pieces as HTML; whatever a tenant wrote is escaped."""
    return format_html_join("", "{}", ((box(one) if isinstance(one, Glyph) else one,) for one in pieces))


def box(glyph: Glyph) -> SafeString:
    return format_html('<span class="dr-glyph" title="{}">{}</span>', glyph.title, glyph.label)


# --- one text ------------------------------------------------------------------------------------------


def text_lines(text: str, flagged: Collection[int] = ()) -> list[Part]:
    """A text with its line numbers, counted as findings count them."""
    seen = Seen(text)
    ends = [(found.start(), found.end()) for found in LINE_END.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    stops = [*(start for start, _ in ends), len(text)]
    if len(starts) > 1 and starts[-1] == len(text):
        # What follows the last line end is no line.
        starts, stops = starts[:-1], stops[:-1]
    lines = [
        DrawnLine("same", drawn(seen.pieces(start, stop)), after=number, is_flagged=number in flagged)
        for number, (start, stop) in enumerate(zip(starts, stops, strict=True), start=1)
        if number <= MOST_LINES
    ]
    left = len(starts) - len(lines)
    return [Part("lines", len(lines), lines), *([Part("rest", left)] if left else [])]


# --- two texts -----------------------------------------------------------------------------------------


def diff_parts(lines: Sequence[Line]) -> list[Part]:
    """The lines of a difference: changes and a little around them in view, the rest folded or counted."""
    brush = Brush(lines)
    parts: list[Part] = []
    room = MOST_LINES
    for is_quiet, stretch in stretches(lines):
        if is_quiet:
            parts.append(folded(stretch, brush))
        else:
            shown, left = stretch[:room], len(stretch[room:])
            room -= len(shown)
            parts += [Part("lines", len(shown), [brush.draw(line) for line in shown])] if shown else []
            parts += [Part("rest", left)] if left else []
    return parts


def folded(stretch: Sequence[Line], brush: "Brush") -> Part:
    if len(stretch) > LONGEST_FOLD:
        return Part("gap", len(stretch))
    return Part("fold", len(stretch), [brush.draw(line) for line in stretch])


def stretches(lines: Sequence[Line]) -> Iterator[tuple[bool, list[Line]]]:
    """Runs of lines with whether they may be folded."""
    near = near_a_change(lines)
    for is_near, group in groupby(zip(near, lines, strict=True), key=lambda pair: pair[0]):
        stretch = [line for _, line in group]
        yield not is_near and len(stretch) >= SHORTEST_FOLD, stretch


def near_a_change(lines: Sequence[Line]) -> list[bool]:
    """Two passes, one each way: how far behind the last change, how far before the next."""
    near = [False] * len(lines)
    for order in (range(len(lines)), range(len(lines) - 1, -1, -1)):
        distance = AROUND + 1
        for at in order:
            distance = 0 if lines[at].kind != "same" else distance + 1
            near[at] |= distance <= AROUND
    return near


class Brush:
    """Draws lines of a difference, knowing both whole texts: only they tell what hides."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.before, self.offsets_before = whole([line for line in lines if line.before is not None])
        self.after, self.offsets_after = whole([line for line in lines if line.after is not None])

    def draw(self, line: Line) -> DrawnLine:
        if line.after is not None:
            seen, offset = self.after, self.offsets_after[line.after]
        else:
            seen, offset = self.before, self.offsets_before[line.before or 0]
        return DrawnLine(line.kind, drawn_spans(line, seen, offset), line.before, line.after)


def whole(lines: Sequence[Line]) -> tuple[Seen, dict[int, int]]:
    """The text these lines make up, and where each of them begins in it."""
    offsets, at = {}, 0
    for number, line in enumerate(lines, start=1):
        offsets[number] = at
        at += len(line.text) + 1
    return Seen("\n".join([line.text for line in lines])), offsets


def drawn_spans(line: Line, seen: Seen, offset: int) -> SafeString:
    """Changed words are inserted or deleted text, so that they are heard as well as seen."""
    said = []
    for span in line.spans:
        pieces = seen.pieces(offset, offset + len(span.text))
        offset += len(span.text)
        if span.is_changed and line.kind != "same":
            look = '<ins class="dr-diff-word">{}</ins>' if line.kind == "added" else DELETED
            said.append(format_html(look, drawn(line_ends_seen(pieces))))
        else:
            said.append(drawn(pieces))
    return format_html_join("", "{}", ((one,) for one in said))


DELETED = '<del class="dr-diff-word">{}</del>'


def line_ends_seen(pieces: Iterable[str | Glyph]) -> Iterator[str | Glyph]:
    """A carriage return is no threat, but where it is all that changed it has to be seen."""
    for piece in pieces:
        if isinstance(piece, str) and "\r" in piece:
            for is_return, group in groupby(piece, key="\r".__eq__):
                said = "".join(group)
                yield glyph("\r", len(said)) if is_return else said
        else:
            yield piece
