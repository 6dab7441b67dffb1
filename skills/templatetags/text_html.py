"""Render texts and diffs as escaped HTML lines with line numbers.

Hidden characters are made visible, and the number and length of rendered lines is limited.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, groupby, islice
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.text.diff import DiffLine, DiffSpan, pair_lines
from skills.files.visible_text import Glyph, VisibleText, build_glyph
from skills.scanning.excerpts import LINE_END_PATTERN

# CONTEXT_LINES unchanged lines are shown before and after a change. Of the other unchanged lines,
# MIN_FOLD_LINES or more in a row are folded.
CONTEXT_LINES, MIN_FOLD_LINES = 3, 4
# More than MAX_FOLD_LINES folded lines in a row are only counted, not rendered. MAX_LINES is the maximum
# number of visible lines per text or diff.
MAX_FOLD_LINES, MAX_LINES = 400, 4_000
# Maximum number of chunks (text or box) rendered per line. A line has very many of them if, for example,
# every second character is hidden.
MAX_PIECES = 2_000

SPAN_HTML = {
    "added": '<ins class="dr-diff-word">{}</ins>',
    "removed": '<del class="dr-diff-word">{}</del>',
    "same": "{}",
}


@dataclass(frozen=True)
class RenderedLine:
    """A line as rendered on a page. `before` and `after` are its numbers in the old and the new text."""

    kind: Literal["same", "removed", "added"]
    html: SafeString
    before: int | None = None
    after: int | None = None
    is_flagged: bool = False


@dataclass(frozen=True)
class LineBlock:
    """A block of lines.

    The lines are visible ("lines"), folded ("fold"), or only counted: "gap" for a long unchanged part, "rest"
    for lines beyond MAX_LINES.
    """

    kind: Literal["lines", "fold", "gap", "rest"]
    size: int
    lines: Sequence[RenderedLine] = ()


def render_pieces(chunks: Iterable[str | Glyph]) -> SafeString:
    """Render text chunks and glyphs (boxes for hidden characters) as HTML. All text is escaped."""
    parts = [
        render_glyph(chunk) if isinstance(chunk, Glyph) else chunk for chunk in islice(chunks, MAX_PIECES + 1)
    ]
    if len(parts) > MAX_PIECES:
        parts[-1] = render_glyph(
            Glyph("…", _("The rest of this line is not shown. Download the file to read it."))
        )
    return join_html(parts)


def join_html(parts: Sequence[str]) -> SafeString:
    """Escape and join the parts. One format_html call for all parts is faster than one call per part."""
    return format_html("{}" * len(parts), *parts) if parts else format_html("{}", "")


@lru_cache(maxsize=512)
def render_glyph(glyph: Glyph) -> SafeString:
    return format_html('<span class="dr-glyph" title="{}">{}</span>', glyph.title, glyph.label)


# --- one text ------------------------------------------------------------------------------------------


def render_text_lines(text: str, flagged: Collection[int] = ()) -> list[LineBlock]:
    """Render a text with line numbers. Lines are counted as in scanner findings, so the numbers agree."""
    visible, spans = VisibleText(text), list(find_line_spans(text))
    lines = [
        RenderedLine(
            "same",
            render_pieces(visible.split_chunks(start, stop)),
            after=number,
            is_flagged=number in flagged,
        )
        for number, (start, stop) in enumerate(spans[:MAX_LINES], start=1)
    ]
    left = len(spans) - len(lines)
    return [LineBlock("lines", len(lines), lines), *([LineBlock("rest", left)] if left else [])]


def find_line_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end offset of each line, without its line end.

    If the text ends with a line end, no empty line follows it.
    """
    start = 0
    for match in LINE_END_PATTERN.finditer(text):
        yield start, match.start()
        start = match.end()
    if start < len(text) or not start:
        yield start, len(text)


# --- two texts -----------------------------------------------------------------------------------------


def render_diff_lines(lines: Sequence[DiffLine], *, is_expanded: bool = False) -> list[LineBlock]:
    """Render a diff. Changes and their context lines are visible; other unchanged lines are folded.

    Very long unchanged parts are only counted. With `is_expanded`, nothing is folded.
    """
    renderer = DiffRenderer(lines)
    blocks: list[LineBlock] = []
    remaining = MAX_LINES
    # If both texts end with a line end, the diff ends with an empty line, which is not shown.
    end = (
        -1
        if lines and lines[-1] == DiffLine("same", (DiffSpan(""),), lines[-1].before, lines[-1].after)
        else None
    )
    for is_foldable, span in group_lines(lines[:end]):
        if is_foldable and not is_expanded:
            blocks.append(fold_lines(span, renderer))
        else:
            visible_lines, left = span[:remaining], len(span[remaining:])
            remaining -= len(visible_lines)
            blocks += (
                [
                    LineBlock(
                        "lines", len(visible_lines), [renderer.render_line(line) for line in visible_lines]
                    )
                ]
                if visible_lines
                else []
            )
            blocks += [LineBlock("rest", left)] if left else []
    return blocks


@dataclass(frozen=True)
class SplitBlock:
    """Consecutive rows of a side-by-side diff: the older and the newer line, or None where there is none."""

    kind: str
    size: int
    rows: Sequence[tuple[RenderedLine | None, RenderedLine | None]] = ()


def render_split_lines(lines: Sequence[DiffLine], *, is_expanded: bool = False) -> list[SplitBlock]:
    """Render a diff with both texts side by side, folded like `render_diff_lines`."""
    renderer, blocks, remaining = DiffRenderer(lines), list[SplitBlock](), MAX_LINES

    def render(span: Sequence[DiffLine]) -> list[tuple[RenderedLine | None, RenderedLine | None]]:
        return [
            (renderer.render_line(old) if old else None, renderer.render_line(new) if new else None)
            for old, new in pair_lines(span)
        ]

    for is_foldable, span in group_lines(lines):
        if is_foldable and not is_expanded:
            is_gap = len(span) > MAX_FOLD_LINES
            blocks.append(SplitBlock("gap" if is_gap else "fold", len(span), () if is_gap else render(span)))
            continue
        visible, left = span[:remaining], len(span[remaining:])
        remaining -= len(visible)
        blocks += [SplitBlock("lines", len(visible), render(visible))] if visible else []
        blocks += [SplitBlock("rest", left)] if left else []
    return blocks


def fold_lines(span: Sequence[DiffLine], renderer: "DiffRenderer") -> LineBlock:
    if len(span) > MAX_FOLD_LINES:
        return LineBlock("gap", len(span))
    return LineBlock("fold", len(span), [renderer.render_line(line) for line in span])


def group_lines(lines: Sequence[DiffLine]) -> Iterator[tuple[bool, list[DiffLine]]]:
    """Group consecutive lines. Yield for each group whether it may be folded, and its lines."""
    near = find_lines_near_change(lines)
    for is_near, group in groupby(zip(near, lines, strict=True), key=lambda pair: pair[0]):
        span = [line for _is_near, line in group]
        yield not is_near and len(span) >= MIN_FOLD_LINES, span


def find_lines_near_change(lines: Sequence[DiffLine]) -> list[bool]:
    """Return for each line whether it is changed or at most CONTEXT_LINES away from a changed line.

    A forward pass finds lines after a change, and a backward pass finds lines before a change.
    """
    near = [False] * len(lines)
    for order in (range(len(lines)), range(len(lines) - 1, -1, -1)):
        distance = CONTEXT_LINES + 1
        for index in order:
            distance = 0 if lines[index].kind != "same" else distance + 1
            near[index] |= distance <= CONTEXT_LINES
    return near


class DiffRenderer:
    """Renders lines of a diff.

    It joins the lines to the complete old and new text, because whether a character is hidden can depend on
    the surrounding text.
    """

    def __init__(self, lines: Sequence[DiffLine]) -> None:
        self.before, self.offsets_before = join_lines([line for line in lines if line.before is not None])
        self.after, self.offsets_after = join_lines([line for line in lines if line.after is not None])

    def render_line(self, line: DiffLine) -> RenderedLine:
        if line.after is not None:
            visible, offset = self.after, self.offsets_after[line.after]
        else:
            visible, offset = self.before, self.offsets_before[line.before or 0]
        return RenderedLine(line.kind, render_spans(line, visible, offset), line.before, line.after)


def render_changed_lines(lines: Sequence[DiffLine]) -> list[RenderedLine]:
    """Render changed lines without context. Removed and added lines are each numbered from 1."""
    removed_numbers, added_numbers = count(1), count(1)
    renumbered = [
        replace(line, before=next(removed_numbers), after=None)
        if line.kind == "removed"
        else replace(line, before=None, after=next(added_numbers))
        for line in lines
    ]
    renderer = DiffRenderer(renumbered)
    return [renderer.render_line(line) for line in renumbered]


def join_lines(lines: Sequence[DiffLine]) -> tuple[VisibleText, dict[int, int]]:
    """Join the lines to one text. Also return the offset in this text of each line, by line number."""
    offsets, offset = {}, 0
    for number, line in enumerate(lines, start=1):
        offsets[number] = offset
        offset += len(line.text) + 1
    return VisibleText("\n".join([line.text for line in lines])), offsets


def render_spans(line: DiffLine, visible: VisibleText, offset: int) -> SafeString:
    """Render the spans of a diff line. Changed words are marked, unless the complete line changed."""
    parts = []
    is_whole_line = len(line.spans) == 1
    for span in line.spans:
        chunks = visible.split_chunks(offset, offset + len(span.text))
        offset += len(span.text)
        html = render_pieces(show_carriage_returns(chunks) if span.is_changed else chunks)
        is_marked = span.is_changed and not is_whole_line
        parts.append(format_html(SPAN_HTML[line.kind], html) if is_marked else html)
    return join_html(parts)


def show_carriage_returns(chunks: Iterable[str | Glyph]) -> Iterator[str | Glyph]:
    """Replace carriage returns with glyphs, because they may be the only change in a line."""
    for chunk in chunks:
        if isinstance(chunk, str) and "\r" in chunk:
            for is_return, group in groupby(chunk, key="\r".__eq__):
                text = "".join(group)
                yield build_glyph("\r", len(text)) if is_return else text
        else:
            yield chunk
