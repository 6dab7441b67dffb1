"""Limits: cutting a part to size with a notice everyone sees, and fitting a whole prompt into a budget."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prompts.assembly.layout import Layout
from prompts.assembly.report import PartReport
from prompts.assembly.segments import Origin, Segment, TextChunk, TextChunks
from prompts.assembly.text import format_cut_notice

# Below this a part says nothing useful, so it is left alone and the budget is reported as exceeded.
MIN_PART_SIZE = 200


class AssembledParts(NamedTuple):
    """Segments, a report on every part, the texts of those that are there, and where volatility changes."""

    segments: list[Segment]
    parts: list[PartReport]
    texts: list[str]
    starts: list[tuple[str, int]]


def cut_chunks(body: TextChunks, limit: int) -> tuple[TextChunks, int]:
    """The body up to its limit and a notice of what is missing; with it, how much that is."""
    size = sum([len(text) for text, _ in body])
    if size <= limit:
        return body, 0
    kept: list[TextChunk] = []
    room = limit
    for text, origin in body:
        if len(text) > room:
            break
        kept.append(TextChunk(text, origin))
        room -= len(text)
    text, origin = body[len(kept)]
    if room > 0:
        kept.append(TextChunk(text[:room], origin))
    return [*kept, TextChunk(format_cut_notice(size - limit))], size - limit


def fit_to_budget(
    layout: Layout,
    limits: Mapping[str, int],
    total: int,
    assemble: Callable[[Mapping[str, int]], AssembledParts],
) -> tuple[AssembledParts, tuple[str, ...]]:
    """Cut the largest parts that may be cut until the whole fits; what cannot fit is said, never torn."""
    tried: dict[str, int] = dict(limits)
    spent: set[str] = set()
    while True:
        made = assemble(tried)
        over = sum(map(len, made.texts)) - total
        if over <= 0:
            return made, ()
        sizes = {part.name: part.kept for part in made.parts}
        names = [part.name for part in layout.parts if part.is_cuttable and part.name not in spent]
        largest = max(names, key=lambda name: sizes.get(name, 0), default=None)
        if largest is None or sizes.get(largest, 0) <= MIN_PART_SIZE:
            return made, (f"The prompt is {over:,} characters over its limit of {total:,}.",)
        tried[largest] = max(MIN_PART_SIZE, sizes[largest] - over - MIN_PART_SIZE)
        spent.add(largest)


CutResult = tuple[TextChunks, int]


def cut_entries(body: TextChunks, limit: int) -> CutResult:
    """As many whole entries as fit, then a notice of what is missing; with it, how much that is."""
    size = count_chunk_characters(body)
    if size <= limit:
        return body, 0
    kept = take_fitting_chunks(body, limit)
    left_out = size - count_chunk_characters(kept)
    return [*kept, TextChunk(format_cut_notice(left_out))], left_out


def cut_elements(body: TextChunks, limit: int) -> CutResult:
    """The same for elements, but the first that does not fit is cut inside its tags."""
    kept = take_fitting_chunks(body, limit)
    room = limit - count_chunk_characters(kept)
    rest = body[len(kept) :]
    shorter = cut_element_body(*rest[0], room) if rest else None
    if shorter is None:
        return cut_entries(body, limit)
    piece, missing = shorter
    later = count_chunk_characters(rest[1:])
    notice = [TextChunk(format_cut_notice(later))] if later else []
    return [*kept, piece, *notice], missing + later


def cut_element_body(text: str, origin: Origin, room: int) -> tuple[TextChunk, int] | None:
    """An element with less between its tags; None when not even those fit."""
    # No attribute can hold a bare `>`, so the first one ends the opening tag.
    opening, ending = text.index(">\n") + 2, text.rindex("\n</")
    kept = room - opening - (len(text) - ending)
    if kept <= 0:
        return None
    missing = ending - opening - kept
    return TextChunk(f"{text[: opening + kept]}{format_cut_notice(missing)}{text[ending:]}", origin), missing


def take_fitting_chunks(body: TextChunks, limit: int) -> TextChunks:
    """The first pieces that fit whole."""
    for place, (text, _) in enumerate(body):
        limit -= len(text)
        if limit < 0:
            return body[:place]
    return body


def count_chunk_characters(body: TextChunks) -> int:
    return sum([len(text) for text, _ in body])
