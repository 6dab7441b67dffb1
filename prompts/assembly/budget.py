"""Limits: cutting a part to size with a notice everyone sees, and fitting a whole prompt into a budget."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prompts.assembly.layout import Layout
from prompts.assembly.report import PartReport
from prompts.assembly.segments import Origin, Piece, Pieces, Segment
from prompts.assembly.text import cut_notice

# Below this a part says nothing useful, so it is left alone and the budget is reported as exceeded.
FLOOR = 200


class Assembled(NamedTuple):
    """Segments, a report on every part, the texts of those that are there, and where volatility changes."""

    segments: list[Segment]
    parts: list[PartReport]
    texts: list[str]
    starts: list[tuple[str, int]]


def cut_pieces(body: Pieces, limit: int) -> tuple[Pieces, int]:
    """The body up to its limit and a notice of what is missing; with it, how much that is."""
    size = sum([len(text) for text, _ in body])
    if size <= limit:
        return body, 0
    kept: list[Piece] = []
    room = limit
    for text, origin in body:
        if len(text) > room:
            break
        kept.append(Piece(text, origin))
        room -= len(text)
    text, origin = body[len(kept)]
    if room > 0:
        kept.append(Piece(text[:room], origin))
    return [*kept, Piece(cut_notice(size - limit))], size - limit


def fit(
    layout: Layout, limits: Mapping[str, int], total: int, assemble: Callable[[Mapping[str, int]], Assembled]
) -> tuple[Assembled, tuple[str, ...]]:
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
        if largest is None or sizes.get(largest, 0) <= FLOOR:
            return made, (f"The prompt is {over:,} characters over its limit of {total:,}.",)
        tried[largest] = max(FLOOR, sizes[largest] - over - FLOOR)
        spent.add(largest)


Cut = tuple[Pieces, int]


def cut_entries(body: Pieces, limit: int) -> Cut:
    """As many whole entries as fit, then a notice of what is missing; with it, how much that is."""
    size = size_of(body)
    if size <= limit:
        return body, 0
    kept = fitting(body, limit)
    left_out = size - size_of(kept)
    return [*kept, Piece(cut_notice(left_out))], left_out


def cut_elements(body: Pieces, limit: int) -> Cut:
    """The same for elements, but the first that does not fit is cut inside its tags."""
    kept = fitting(body, limit)
    room = limit - size_of(kept)
    rest = body[len(kept) :]
    shorter = cut_inside(*rest[0], room) if rest else None
    if shorter is None:
        return cut_entries(body, limit)
    piece, missing = shorter
    later = size_of(rest[1:])
    notice = [Piece(cut_notice(later))] if later else []
    return [*kept, piece, *notice], missing + later


def cut_inside(text: str, origin: Origin, room: int) -> tuple[Piece, int] | None:
    """An element with less between its tags; None when not even those fit."""
    # No attribute can hold a bare `>`, so the first one ends the opening tag.
    opening, ending = text.index(">\n") + 2, text.rindex("\n</")
    kept = room - opening - (len(text) - ending)
    if kept <= 0:
        return None
    missing = ending - opening - kept
    return Piece(f"{text[: opening + kept]}{cut_notice(missing)}{text[ending:]}", origin), missing


def fitting(body: Pieces, limit: int) -> Pieces:
    """The first pieces that fit whole."""
    for place, (text, _) in enumerate(body):
        limit -= len(text)
        if limit < 0:
            return body[:place]
    return body


def size_of(body: Pieces) -> int:
    return sum([len(text) for text, _ in body])
