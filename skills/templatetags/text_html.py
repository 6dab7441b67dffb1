"""Texts and differences as lines of safe HTML: numbered, what hides drawn as boxes, long ones bounded."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, groupby, islice
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.text.diff import DiffLine, DiffSpan
from skills.files.visible_text import Glyph, VisibleText, build_glyph
from skills.scanning.excerpts import LINE_END_PATTERN

# Lines around a change that stay in view, and how long a quiet stretch must be to be folded.
CONTEXT_LINES, MIN_FOLD_LINES = 3, 4
# A longer quiet stretch is only counted; and nobody reads more changed lines than this on one page.
MAX_FOLD_LINES, MAX_LINES = 400, 4_000
# So many pieces of one line are drawn; where every second character hides, the rest tells nothing new.
MAX_PIECES = 2_000

SPAN_HTML = {
    "added": '<ins class="dr-diff-word">{}</ins>',
    "removed": '<del class="dr-diff-word">{}</del>',
    "same": "{}",
}


@dataclass(frozen=True)
class RenderedLine:
    """A line as it stands on a page."""

    kind: Literal["same", "removed", "added"]
    html: SafeString
    before: int | None = None
    after: int | None = None
    is_flagged: bool = False


@dataclass(frozen=True)
class LineBlock:
    """Some lines in view, folded away, or too many to draw; `size` is how many they are."""

    kind: Literal["lines", "fold", "gap", "rest"]
    size: int
    lines: Sequence[RenderedLine] = ()


def render_pieces(pieces: Iterable[str | Glyph]) -> SafeString:
    """Pieces as HTML; whatever a tenant wrote is escaped."""
    shown = [render_glyph(one) if isinstance(one, Glyph) else one for one in islice(pieces, MAX_PIECES + 1)]
    if len(shown) > MAX_PIECES:
        shown[-1] = render_glyph(
            Glyph("…", _("The rest of this line is not drawn; download the file to read it."))
        )
    return join_html(shown)


def join_html(pieces: Sequence[str]) -> SafeString:
    """All at once: a line may have a thousand pieces, and a page thousands of lines."""
    return format_html("{}" * len(pieces), *pieces) if pieces else format_html("{}", "")


@lru_cache(maxsize=512)
def render_glyph(glyph: Glyph) -> SafeString:
    return format_html('<span class="dr-glyph" title="{}">{}</span>', glyph.title, glyph.label)


# --- one text ------------------------------------------------------------------------------------------


def render_text_lines(text: str, flagged: Collection[int] = ()) -> list[LineBlock]:
    """A text with its line numbers, counted as findings count them."""
    seen, places = VisibleText(text), list(find_line_spans(text))
    lines = [
        RenderedLine(
            "same", render_pieces(seen.pieces(start, stop)), after=number, is_flagged=number in flagged
        )
        for number, (start, stop) in enumerate(places[:MAX_LINES], start=1)
    ]
    left = len(places) - len(lines)
    return [LineBlock("lines", len(lines), lines), *([LineBlock("rest", left)] if left else [])]


def find_line_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends; what follows the last line end is no line, if it is nothing."""
    at = 0
    for found in LINE_END_PATTERN.finditer(text):
        yield at, found.start()
        at = found.end()
    if at < len(text) or not at:
        yield at, len(text)


# --- two texts -----------------------------------------------------------------------------------------


def render_diff_lines(lines: Sequence[DiffLine], *, is_whole: bool = False) -> list[LineBlock]:
    """The lines of a difference: changes and a little around them in view, the rest folded or counted."""
    brush = DiffRenderer(lines)
    parts: list[LineBlock] = []
    room = MAX_LINES
    # Both texts end in a line end: what follows it is no line.
    end = (
        -1
        if lines and lines[-1] == DiffLine("same", (DiffSpan(""),), lines[-1].before, lines[-1].after)
        else None
    )
    for is_quiet, stretch in group_lines(lines[:end]):
        if is_quiet and not is_whole:
            parts.append(fold_lines(stretch, brush))
        else:
            shown, left = stretch[:room], len(stretch[room:])
            room -= len(shown)
            parts += [LineBlock("lines", len(shown), [brush.draw(line) for line in shown])] if shown else []
            parts += [LineBlock("rest", left)] if left else []
    return parts


def fold_lines(stretch: Sequence[DiffLine], brush: "DiffRenderer") -> LineBlock:
    if len(stretch) > MAX_FOLD_LINES:
        return LineBlock("gap", len(stretch))
    return LineBlock("fold", len(stretch), [brush.draw(line) for line in stretch])


def group_lines(lines: Sequence[DiffLine]) -> Iterator[tuple[bool, list[DiffLine]]]:
    """Runs of lines with whether they may be folded."""
    near = find_lines_near_change(lines)
    for is_near, group in groupby(zip(near, lines, strict=True), key=lambda pair: pair[0]):
        stretch = [line for _is_near, line in group]
        yield not is_near and len(stretch) >= MIN_FOLD_LINES, stretch


def find_lines_near_change(lines: Sequence[DiffLine]) -> list[bool]:
    """Two passes, one each way: how far behind the last change, how far before the next."""
    near = [False] * len(lines)
    for order in (range(len(lines)), range(len(lines) - 1, -1, -1)):
        distance = CONTEXT_LINES + 1
        for at in order:
            distance = 0 if lines[at].kind != "same" else distance + 1
            near[at] |= distance <= CONTEXT_LINES
    return near


class DiffRenderer:
    """Draws lines of a difference, knowing both whole texts: only they tell what hides."""

    def __init__(self, lines: Sequence[DiffLine]) -> None:
        self.before, self.offsets_before = join_lines([line for line in lines if line.before is not None])
        self.after, self.offsets_after = join_lines([line for line in lines if line.after is not None])

    def draw(self, line: DiffLine) -> RenderedLine:
        if line.after is not None:
            seen, offset = self.after, self.offsets_after[line.after]
        else:
            seen, offset = self.before, self.offsets_before[line.before or 0]
        return RenderedLine(line.kind, render_spans(line, seen, offset), line.before, line.after)


def render_changed_lines(lines: Sequence[DiffLine]) -> list[RenderedLine]:
    """Some changed lines by themselves: each side is counted anew, as if there were no others."""
    gone, come = count(1), count(1)
    apart = [
        replace(line, before=next(gone), after=None)
        if line.kind == "removed"
        else replace(line, before=None, after=next(come))
        for line in lines
    ]
    brush = DiffRenderer(apart)
    return [brush.draw(line) for line in apart]


def join_lines(lines: Sequence[DiffLine]) -> tuple[VisibleText, dict[int, int]]:
    """The text these lines make up, and where each of them begins in it."""
    offsets, at = {}, 0
    for number, line in enumerate(lines, start=1):
        offsets[number] = at
        at += len(line.text) + 1
    return VisibleText("\n".join([line.text for line in lines])), offsets


def render_spans(line: DiffLine, seen: VisibleText, offset: int) -> SafeString:
    """Changed words are inserted or deleted text; a line that is new as a whole says so by itself."""
    said = []
    is_whole = len(line.spans) == 1
    for span in line.spans:
        pieces = seen.pieces(offset, offset + len(span.text))
        offset += len(span.text)
        words = render_pieces(show_carriage_returns(pieces) if span.is_changed else pieces)
        is_marked = span.is_changed and not is_whole
        said.append(format_html(SPAN_HTML[line.kind], words) if is_marked else words)
    return join_html(said)


def show_carriage_returns(pieces: Iterable[str | Glyph]) -> Iterator[str | Glyph]:
    """A carriage return is no threat, but where it is all that changed it has to be seen."""
    for piece in pieces:
        if isinstance(piece, str) and "\r" in piece:
            for is_return, group in groupby(piece, key="\r".__eq__):
                said = "".join(group)
                yield build_glyph("\r", len(said)) if is_return else said
        else:
            yield piece
