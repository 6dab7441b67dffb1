"""The report of a build: what was kept, cut, omitted or lost, problems, and cache boundaries."""

from collections.abc import Iterable
from typing import NamedTuple

from prompts.assembly.segments import VOLATILITY_LEVELS

new_tuple = tuple.__new__
VOLATILITY_RANKS = {volatility: rank for rank, volatility in enumerate(VOLATILITY_LEVELS)}


class PartReport(NamedTuple):
    """One part: how many characters were kept and cut, or why it is absent."""

    name: str
    kept: int = 0
    cut: int = 0
    omitted: str = ""


class CacheBoundary(NamedTuple):
    """The text before `offset` changes no more often than `volatility`."""

    volatility: str
    offset: int


class AssemblyReport(NamedTuple):
    """The report of a build, used by budgets, cache advice, impact analysis and pages."""

    parts: tuple[PartReport, ...] = ()
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    boundaries: tuple[CacheBoundary, ...] = ()


def find_cache_boundaries(starts: Iterable[tuple[str, int]]) -> tuple[CacheBoundary, ...]:
    """Find the longest prefix without text more volatile than each level; shortest first, equal ones once.

    A start is a volatility and the offset at which text of that volatility begins.
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
