"""Limits: cutting a part to size with a notice everyone sees, and fitting a whole prompt into a budget."""

from collections.abc import Callable, Mapping, Sequence

from prompts.assembly.layout import Layout
from prompts.assembly.pieces import Piece, Segment
from prompts.assembly.report import PartReport
from prompts.assembly.text import cut_notice

Assembled = tuple[list[Segment], list[PartReport]]
# Below this a part says nothing useful, so it is left alone and the budget is reported as exceeded.
FLOOR = 200


def cut_pieces(body: Sequence[Piece], limit: int) -> tuple[Sequence[Piece], int]:
    """The body up to its limit and a notice of what is missing; with it, how much that is."""
    size = sum([len(piece.text) for piece in body])
    if size <= limit:
        return body, 0
    kept: list[Piece] = []
    room = limit
    for piece in body:
        if len(piece.text) > room:
            break
        kept.append(piece)
        room -= len(piece.text)
    rest = body[len(kept)]
    if room > 0:
        kept.append(Piece(rest.text[:room], rest.origin))
    return [*kept, Piece(cut_notice(size - limit))], size - limit


def fit(
    layout: Layout, limits: Mapping[str, int], total: int, assemble: Callable[[Mapping[str, int]], Assembled]
) -> tuple[list[Segment], list[PartReport], tuple[str, ...]]:
    """Cut the largest parts that may be cut until the whole fits; what cannot fit is said, never torn."""
    tried: dict[str, int] = dict(limits)
    spent: set[str] = set()
    while True:
        segments, parts = assemble(tried)
        over = sum([len(segment.text) for segment in segments]) - total
        if over <= 0:
            return segments, parts, ()
        sizes = {part.name: part.kept for part in parts}
        names = [part.name for part in layout.parts if part.is_cuttable and part.name not in spent]
        largest = max(names, key=lambda name: sizes.get(name, 0), default=None)
        if largest is None or sizes.get(largest, 0) <= FLOOR:
            return segments, parts, (f"The prompt is {over:,} characters over its limit of {total:,}.",)
        tried[largest] = max(FLOOR, sizes[largest] - over - FLOOR)
        spent.add(largest)
