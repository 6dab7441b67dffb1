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
    """An offset in characters; the text before it changes no more often than `volatility`."""

    volatility: str
    offset: int


class AssemblyReport(NamedTuple):
    """The report of a build, used by budgets, cache advice, impact analysis and pages."""

    parts: tuple[PartReport, ...] = ()
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    boundaries: tuple[CacheBoundary, ...] = ()


def find_cache_boundaries(starts: Iterable[tuple[str, int]]) -> tuple[CacheBoundary, ...]:
    """Find for each volatility level the longest prefix without more volatile text.

    Each item of `starts` is a volatility and the offset at which text of that volatility begins. The
    boundaries are sorted by offset, and each offset occurs once. The start and the end of the prompt are not
    boundaries.
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
