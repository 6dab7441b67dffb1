"""What became of the inputs: kept, cut, omitted, lost, and what a reader should know."""

from collections.abc import Iterable
from typing import NamedTuple

from prompts.assembly.segments import VOLATILITY_LEVELS

new_tuple = tuple.__new__
VOLATILITY_RANKS = {volatility: rank for rank, volatility in enumerate(VOLATILITY_LEVELS)}


class PartReport(NamedTuple):
    """One part: how much of it stands in the prompt, how much was cut, or why it is absent."""

    name: str
    kept: int = 0
    cut: int = 0
    omitted: str = ""


class CacheBoundary(NamedTuple):
    """Everything before this offset changes no quicker than this."""

    volatility: str
    offset: int


class AssemblyReport(NamedTuple):
    """Read by budgets, cache advice, impact and people."""

    parts: tuple[PartReport, ...] = ()
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    boundaries: tuple[CacheBoundary, ...] = ()


def find_cache_boundaries(starts: Iterable[tuple[str, int]]) -> tuple[CacheBoundary, ...]:
    """The longest prefixes that hold nothing quicker than each level, shortest first; equal ones once.

    A start is a volatility and the offset at which something begins that changes so quickly.
    """
    ends: list[CacheBoundary] = []
    level = 0
    for volatility, offset in starts:
        rank = VOLATILITY_RANKS[volatility]
        if rank > level:
            if offset and (not ends or ends[-1].offset != offset):
                ends.append(new_tuple(CacheBoundary, (VOLATILITY_LEVELS[level], offset)))
            level = rank
    return tuple(ends)
