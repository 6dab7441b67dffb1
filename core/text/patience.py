"""Patience diff of two sequences, in time that grows only a little faster than their length.

Items that occur exactly once in both sequences are the anchors. The parts between them are compared in the
same way, up to a fixed depth. Parts without an anchor count as changed, apart from a common start and end.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, NamedTuple

# Limits the work on texts made to have one anchor at each depth. Real texts need less than half this depth.
MAX_DEPTH = 16


class MatchingBlock(NamedTuple):
    """`old[i : i + length]` equals `new[j : j + length]`."""

    i: int
    j: int
    length: int


class DiffBlock(NamedTuple):
    """`old[i1:i2]` is kept as `new[j1:j2]`, or replaced by it. For additions and deletions one is empty."""

    kind: Literal["equal", "changed"]
    i1: int
    i2: int
    j1: int
    j2: int


def diff_sequences(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[DiffBlock]:
    """Yield blocks that cover both sequences in order."""
    i = j = 0
    for match in [*find_matching_blocks(old, new), MatchingBlock(len(old), len(new), 0)]:
        if i < match.i or j < match.j:
            yield DiffBlock("changed", i, match.i, j, match.j)
        i, j = match.i + match.length, match.j + match.length
        if match.length:
            yield DiffBlock("equal", match.i, i, match.j, j)


def find_matching_blocks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[MatchingBlock]:
    """Return the matching blocks in order; blocks that touch each other are joined."""
    found: list[MatchingBlock] = []
    parts = [(0, len(old), 0, len(new), 0)]
    while parts:
        i1, i2, j1, j2, depth = parts.pop()
        start = 0
        while i1 + start < i2 and j1 + start < j2 and old[i1 + start] == new[j1 + start]:
            start += 1
        found.append(MatchingBlock(i1, j1, start))
        i1, j1 = i1 + start, j1 + start
        end = 0
        while i1 < i2 - end and j1 < j2 - end and old[i2 - end - 1] == new[j2 - end - 1]:
            end += 1
        i2, j2 = i2 - end, j2 - end
        found.append(MatchingBlock(i2, j2, end))
        if depth < MAX_DEPTH and i1 < i2 and j1 < j2:
            anchors = find_anchors(old, new, (i1, i2), (j1, j2))
            for i, j in anchors:
                found.append(MatchingBlock(i, j, 1))
                parts.append((i1, i, j1, j, depth + 1))
                i1, j1 = i + 1, j + 1
            if anchors:
                parts.append((i1, i2, j1, j2, depth + 1))
    return join_blocks(sorted(block for block in found if block.length))


def join_blocks(blocks: list[MatchingBlock]) -> list[MatchingBlock]:
    joined: list[MatchingBlock] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if last and (last.i + last.length, last.j + last.length) == (block.i, block.j):
            joined[-1] = MatchingBlock(last.i, last.j, last.length + block.length)
        else:
            joined.append(block)
    return joined


def find_anchors(
    old: Sequence[Hashable], new: Sequence[Hashable], old_range: tuple[int, int], new_range: tuple[int, int]
) -> list[tuple[int, int]]:
    """Return the positions of items that occur once in both ranges: the longest list that both agree on."""
    in_new = find_single_items(new, *new_range)
    pairs = [(i, in_new[item]) for item, i in find_single_items(old, *old_range).items() if item in in_new]
    # Longest increasing subsequence of the new positions, by patience sorting.
    tops: list[int] = []
    top_pairs: list[int] = []
    previous: list[int] = []
    for at, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        previous.append(top_pairs[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        top_pairs[pile : pile + 1] = [at]
    anchors: list[tuple[int, int]] = []
    at = top_pairs[-1] if top_pairs else -1
    while at >= 0:
        anchors.append(pairs[at])
        at = previous[at]
    return anchors[::-1]


def find_single_items(items: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    """Map the items that occur once in the range to their positions, in order of position."""
    positions: dict[Hashable, int] = {}
    repeated: set[Hashable] = set()
    for at in range(start, end):
        item = items[at]
        if item in positions:
            repeated.add(item)
        else:
            positions[item] = at
    return {item: at for item, at in positions.items() if item not in repeated}
