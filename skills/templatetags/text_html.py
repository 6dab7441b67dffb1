"""Texts and differences as lines of safe HTML: numbered, what hides drawn as boxes, long ones bounded."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, groupby, islice
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.text.diff import Line, Span
from skills.files.visible_text import Glyph, Seen, glyph
from skills.scanning.excerpts import LINE_END

# Lines around a change that stay in view, and how long a quiet stretch must be to be folded.
AROUND, SHORTEST_FOLD = 3, 4
# A longer quiet stretch is only counted; and nobody reads more changed lines than this on one page.
LONGEST_FOLD, MOST_LINES = 400, 4_000
# So many pieces of one line are drawn; where every second character hides, the rest tells nothing new.
MOST_PIECES = 2_000

WORDS = {
    "added": '<ins class="dr-diff-word">{}</ins>',
    "removed": '<del class="dr-diff-word">{}</del>',
    "same": "{}",
}


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
    shown = [box(one) if isinstance(one, Glyph) else one for one in islice(pieces, MOST_PIECES + 1)]
    if len(shown) > MOST_PIECES:
        shown[-1] = box(Glyph("…", _("The rest of this line is not drawn; download the file to read it.")))
    return joined(shown)


def joined(pieces: Sequence[str]) -> SafeString:
    """All at once: a line may have a thousand pieces, and a page thousands of lines."""
    return format_html("{}" * len(pieces), *pieces) if pieces else format_html("{}", "")


@lru_cache(maxsize=512)
def box(glyph: Glyph) -> SafeString:
    return format_html('<span class="dr-glyph" title="{}">{}</span>', glyph.title, glyph.label)


# --- one text ------------------------------------------------------------------------------------------


def text_lines(text: str, flagged: Collection[int] = ()) -> list[Part]:
    """A text with its line numbers, counted as findings count them."""
    seen, places = Seen(text), list(line_places(text))
    lines = [
        DrawnLine("same", drawn(seen.pieces(start, stop)), after=number, is_flagged=number in flagged)
        for number, (start, stop) in enumerate(places[:MOST_LINES], start=1)
    ]
    left = len(places) - len(lines)
    return [Part("lines", len(lines), lines), *([Part("rest", left)] if left else [])]


def line_places(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends; what follows the last line end is no line, if it is nothing."""
    at = 0
    for found in LINE_END.finditer(text):
        yield at, found.start()
        at = found.end()
    if at < len(text) or not at:
        yield at, len(text)


# --- two texts -----------------------------------------------------------------------------------------


def diff_parts(lines: Sequence[Line], *, is_whole: bool = False) -> list[Part]:
    """The lines of a difference: changes and a little around them in view, the rest folded or counted."""
    brush = Brush(lines)
    parts: list[Part] = []
    room = MOST_LINES
    # Both texts end in a line end: what follows it is no line.
    end = -1 if lines and lines[-1] == Line("same", (Span(""),), lines[-1].before, lines[-1].after) else None
    for is_quiet, stretch in stretches(lines[:end]):
        if is_quiet and not is_whole:
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
        stretch = [line for _is_near, line in group]
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


def drawn_apart(lines: Sequence[Line]) -> list[DrawnLine]:
    """Some changed lines by themselves: each side is counted anew, as if there were no others."""
    gone, come = count(1), count(1)
    apart = [
        replace(line, before=next(gone), after=None)
        if line.kind == "removed"
        else replace(line, before=None, after=next(come))
        for line in lines
    ]
    brush = Brush(apart)
    return [brush.draw(line) for line in apart]


def whole(lines: Sequence[Line]) -> tuple[Seen, dict[int, int]]:
    """The text these lines make up, and where each of them begins in it."""
    offsets, at = {}, 0
    for number, line in enumerate(lines, start=1):
        offsets[number] = at
        at += len(line.text) + 1
    return Seen("\n".join([line.text for line in lines])), offsets


def drawn_spans(line: Line, seen: Seen, offset: int) -> SafeString:
    """Changed words are inserted or deleted text; a line that is new as a whole says so by itself."""
    said = []
    is_whole = len(line.spans) == 1
    for span in line.spans:
        pieces = seen.pieces(offset, offset + len(span.text))
        offset += len(span.text)
        words = drawn(line_ends_seen(pieces) if span.is_changed else pieces)
        is_marked = span.is_changed and not is_whole
        said.append(format_html(WORDS[line.kind], words) if is_marked else words)
    return joined(said)


def line_ends_seen(pieces: Iterable[str | Glyph]) -> Iterator[str | Glyph]:
    """A carriage return is no threat, but where it is all that changed it has to be seen."""
    for piece in pieces:
        if isinstance(piece, str) and "\r" in piece:
            for is_return, group in groupby(piece, key="\r".__eq__):
                said = "".join(group)
                yield glyph("\r", len(said)) if is_return else said
        else:
            yield piece
