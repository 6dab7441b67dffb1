"""Cuts for bodies that plain cutting would leave open: elements stay closed, entries stay whole."""

from collections.abc import Sequence

from prompts.assembly.pieces import Piece
from prompts.assembly.text import cut_notice

Cut = tuple[Sequence[Piece], int]


def cut_entries(body: Sequence[Piece], limit: int) -> Cut:
    """As many whole entries as fit, then a notice of what is missing; with it, how much that is."""
    size = sum([len(piece.text) for piece in body])
    if size <= limit:
        return body, 0
    kept = fitting(body, limit)
    left_out = size - sum([len(piece.text) for piece in kept])
    return [*kept, Piece(cut_notice(left_out))], left_out


def cut_elements(body: Sequence[Piece], limit: int) -> Cut:
    """The same for elements, but the first that does not fit is cut inside its tags."""
    kept = fitting(body, limit)
    room = limit - sum([len(piece.text) for piece in kept])
    rest = body[len(kept) :]
    shorter = cut_inside(rest[0], room) if rest else None
    if shorter is None:
        return cut_entries(body, limit)
    piece, missing = shorter
    later = sum([len(piece.text) for piece in rest[1:]])
    notice = [Piece(cut_notice(later))] if later else []
    return [*kept, piece, *notice], missing + later


def cut_inside(piece: Piece, room: int) -> tuple[Piece, int] | None:
    """An element with less between its tags; None when not even those fit."""
    # No attribute can hold a bare `>`, so the first one ends the opening tag.
    opening, ending = piece.text.index(">\n") + 2, piece.text.rindex("\n</")
    kept = room - opening - (len(piece.text) - ending)
    if kept <= 0:
        return None
    missing = ending - opening - kept
    text = f"{piece.text[: opening + kept]}{cut_notice(missing)}{piece.text[ending:]}"
    return Piece(text, piece.origin), missing


def fitting(body: Sequence[Piece], limit: int) -> list[Piece]:
    """The first pieces that fit whole."""
    kept: list[Piece] = []
    for piece in body:
        limit -= len(piece.text)
        if limit < 0:
            break
        kept.append(piece)
    return kept
