"""What became of the inputs: kept, cut, omitted, lost, and what a reader should know."""

from dataclasses import dataclass

from prompts.assembly.pieces import VOLATILITY, Segment


@dataclass(frozen=True)
class PartReport:
    """One part: how much of it stands in the prompt, how much was cut, or why it is absent."""

    name: str
    kept: int = 0
    cut: int = 0
    omitted: str = ""


@dataclass(frozen=True)
class Boundary:
    """Everything before this offset changes no quicker than this."""

    volatility: str
    offset: int


@dataclass(frozen=True)
class Report:
    """Read by budgets, cache advice, impact and people."""

    parts: tuple[PartReport, ...] = ()
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    boundaries: tuple[Boundary, ...] = ()


def boundaries(segments: list[Segment] | tuple[Segment, ...]) -> tuple[Boundary, ...]:
    """The longest prefixes that hold nothing quicker than each level, shortest first; equal ones once."""
    ends: list[Boundary] = []
    offset, level, last = 0, 0, ""
    for segment in segments:
        # Parts are runs of one volatility: asked only where it changes.
        if segment.volatility != last:
            last = segment.volatility
            rank = VOLATILITY.index(last)
            if rank > level:
                if offset and (not ends or ends[-1].offset != offset):
                    ends.append(Boundary(VOLATILITY[level], offset))
                level = rank
        offset += len(segment.text)
    return tuple(ends)
