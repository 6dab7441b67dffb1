"""Cuts for bodies that plain cutting would leave open: elements stay closed, entries stay whole."""

from prompts.assembly.segments import Origin, Piece, Pieces
from prompts.assembly.text import cut_notice

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
