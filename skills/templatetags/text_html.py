"""Render texts and diffs as escaped HTML lines with line numbers, visible hidden characters and limits."""

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

# Context lines around a change, and the minimum length of an unchanged span that is folded.
CONTEXT_LINES, MIN_FOLD_LINES = 3, 4
# A longer unchanged span is only counted, not rendered; and the maximum of rendered lines per page.
MAX_FOLD_LINES, MAX_LINES = 400, 4_000
# Maximum of rendered chunks per line; a line where every second character is hidden has very many.
MAX_PIECES = 2_000

SPAN_HTML = {
    "added": '<ins class="dr-diff-word">{}</ins>',
    "removed": '<del class="dr-diff-word">{}</del>',
    "same": "{}",
}


@dataclass(frozen=True)
class RenderedLine:
    """A line as rendered on a page."""

    kind: Literal["same", "removed", "added"]
    html: SafeString
    before: int | None = None
    after: int | None = None
    is_flagged: bool = False


@dataclass(frozen=True)
class LineBlock:
    """A block of lines: visible ("lines"), folded ("fold"), or only counted ("gap", "rest")."""

    kind: Literal["lines", "fold", "gap", "rest"]
    size: int
    lines: Sequence[RenderedLine] = ()


def render_pieces(chunks: Iterable[str | Glyph]) -> SafeString:
    """Render text chunks and glyphs as HTML; all text is escaped."""
    parts = [
        render_glyph(chunk) if isinstance(chunk, Glyph) else chunk for chunk in islice(chunks, MAX_PIECES + 1)
    ]
    if len(parts) > MAX_PIECES:
        parts[-1] = render_glyph(
            Glyph("…", _("The rest of this line is not drawn; download the file to read it."))
        )
    return join_html(parts)


def join_html(parts: Sequence[str]) -> SafeString:
    """Escape and join the parts with one format_html call, which is faster for lines with many chunks."""
    return format_html("{}" * len(parts), *parts) if parts else format_html("{}", "")


@lru_cache(maxsize=512)
def render_glyph(glyph: Glyph) -> SafeString:
    return format_html('<span class="dr-glyph" title="{}">{}</span>', glyph.title, glyph.label)


# --- one text ------------------------------------------------------------------------------------------


def render_text_lines(text: str, flagged: Collection[int] = ()) -> list[LineBlock]:
    """Render a text with line numbers, which are counted as in scanner findings."""
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
    """Yield start and end of each line; an empty rest after the last line end is not a line."""
    start = 0
    for match in LINE_END_PATTERN.finditer(text):
        yield start, match.start()
        start = match.end()
    if start < len(text) or not start:
        yield start, len(text)


# --- two texts -----------------------------------------------------------------------------------------


def render_diff_lines(lines: Sequence[DiffLine], *, is_expanded: bool = False) -> list[LineBlock]:
    """Render a diff: changes with context lines visible, unchanged spans folded or only counted."""
    renderer = DiffRenderer(lines)
    blocks: list[LineBlock] = []
    remaining = MAX_LINES
    # Both texts end with a line end: drop the empty line after it.
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


def fold_lines(span: Sequence[DiffLine], renderer: "DiffRenderer") -> LineBlock:
    if len(span) > MAX_FOLD_LINES:
        return LineBlock("gap", len(span))
    return LineBlock("fold", len(span), [renderer.render_line(line) for line in span])


def group_lines(lines: Sequence[DiffLine]) -> Iterator[tuple[bool, list[DiffLine]]]:
    """Yield runs of lines, each with whether it may be folded."""
    near = find_lines_near_change(lines)
    for is_near, group in groupby(zip(near, lines, strict=True), key=lambda pair: pair[0]):
        span = [line for _is_near, line in group]
        yield not is_near and len(span) >= MIN_FOLD_LINES, span


def find_lines_near_change(lines: Sequence[DiffLine]) -> list[bool]:
    """Mark the lines within CONTEXT_LINES of a change, with one forward and one backward pass."""
    near = [False] * len(lines)
    for order in (range(len(lines)), range(len(lines) - 1, -1, -1)):
        distance = CONTEXT_LINES + 1
        for index in order:
            distance = 0 if lines[index].kind != "same" else distance + 1
            near[index] |= distance <= CONTEXT_LINES
    return near


class DiffRenderer:
    """Renders lines of a diff; needs both complete texts to detect hidden characters."""

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
    """Render changed lines without context; each side is numbered from 1."""
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
    """Return the joined text of the lines, and the offset of each line number in it."""
    offsets, offset = {}, 0
    for number, line in enumerate(lines, start=1):
        offsets[number] = offset
        offset += len(line.text) + 1
    return VisibleText("\n".join([line.text for line in lines])), offsets


def render_spans(line: DiffLine, visible: VisibleText, offset: int) -> SafeString:
    """Render the spans of a line; changed words are marked, except in a line that changed entirely."""
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
    """Replace carriage returns by glyphs: they are harmless, but may be the only change in a line."""
    for chunk in chunks:
        if isinstance(chunk, str) and "\r" in chunk:
            for is_return, group in groupby(chunk, key="\r".__eq__):
                text = "".join(group)
                yield build_glyph("\r", len(text)) if is_return else text
        else:
            yield chunk
