"""Enforce character limits: truncate single parts with a notice, and fit a prompt into a total budget."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prompts.assembly.layout import Layout
from prompts.assembly.report import PartReport
from prompts.assembly.segments import Origin, Segment, TextChunk, TextChunks
from prompts.assembly.text import format_cut_notice

# In characters. A part is not cut below this size, because the rest would be useless; if the prompt then
# still does not fit, the budget is reported as exceeded.
MIN_PART_SIZE = 200


class AssembledParts(NamedTuple):
    """Segments, a report on every part, the text of each included part, and the offsets of volatilities."""

    segments: list[Segment]
    parts: list[PartReport]
    texts: list[str]
    starts: list[tuple[str, int]]


def cut_chunks(body: TextChunks, limit: int) -> tuple[TextChunks, int]:
    """Truncate a body to `limit` characters and append a notice; also return how many were removed."""
    size = sum([len(text) for text, _ in body])
    if size <= limit:
        return body, 0
    kept: list[TextChunk] = []
    remaining = limit
    for text, origin in body:
        if len(text) > remaining:
            break
        kept.append(TextChunk(text, origin))
        remaining -= len(text)
    text, origin = body[len(kept)]
    if remaining > 0:
        kept.append(TextChunk(text[:remaining], origin))
    return [*kept, TextChunk(format_cut_notice(size - limit))], size - limit


def fit_to_budget(
    layout: Layout,
    limits: Mapping[str, int],
    total: int,
    assemble: Callable[[Mapping[str, int]], AssembledParts],
) -> tuple[AssembledParts, tuple[str, ...]]:
    """Cut the largest cuttable parts, one after the other, until the prompt fits into `total` characters.

    When that is not enough, return the prompt with a problem message instead of cutting other parts.
    """
    part_limits: dict[str, int] = dict(limits)
    already_cut: set[str] = set()
    while True:
        assembled = assemble(part_limits)
        over = sum(map(len, assembled.texts)) - total
        if over <= 0:
            return assembled, ()
        sizes = {part.name: part.kept for part in assembled.parts}
        names = [part.name for part in layout.parts if part.is_cuttable and part.name not in already_cut]
        largest = max(names, key=lambda name: sizes.get(name, 0), default=None)
        if largest is None or sizes.get(largest, 0) <= MIN_PART_SIZE:
            return assembled, (f"The prompt is {over:,} characters over its limit of {total:,}.",)
        part_limits[largest] = max(MIN_PART_SIZE, sizes[largest] - over - MIN_PART_SIZE)
        already_cut.add(largest)


CutResult = tuple[TextChunks, int]


def cut_entries(body: TextChunks, limit: int) -> CutResult:
    """Keep the leading entries that fit completely and append a notice; also return the characters cut."""
    size = count_chunk_characters(body)
    if size <= limit:
        return body, 0
    kept = take_fitting_chunks(body, limit)
    left_out = size - count_chunk_characters(kept)
    return [*kept, TextChunk(format_cut_notice(left_out))], left_out


def cut_elements(body: TextChunks, limit: int) -> CutResult:
    """Like `cut_entries`, but keep the beginning of the first element that does not fit, with its tags."""
    kept = take_fitting_chunks(body, limit)
    remaining = limit - count_chunk_characters(kept)
    rest = body[len(kept) :]
    shorter = cut_element_body(*rest[0], remaining) if rest else None
    if shorter is None:
        return cut_entries(body, limit)
    element, missing = shorter
    later = count_chunk_characters(rest[1:])
    notice = [TextChunk(format_cut_notice(later))] if later else []
    return [*kept, element, *notice], missing + later


def cut_element_body(text: str, origin: Origin, limit: int) -> tuple[TextChunk, int] | None:
    """Truncate an element between its tags; None when not even the tags fit into the limit."""
    # `>` is escaped in attributes, so the first `>` ends the opening tag.
    opening, ending = text.index(">\n") + 2, text.rindex("\n</")
    kept = limit - opening - (len(text) - ending)
    if kept <= 0:
        return None
    missing = ending - opening - kept
    return TextChunk(f"{text[: opening + kept]}{format_cut_notice(missing)}{text[ending:]}", origin), missing


def take_fitting_chunks(body: TextChunks, limit: int) -> TextChunks:
    """Return the leading chunks that fit without truncation."""
    for index, (text, _) in enumerate(body):
        limit -= len(text)
        if limit < 0:
            return body[:index]
    return body


def count_chunk_characters(body: TextChunks) -> int:
    return sum([len(text) for text, _ in body])
