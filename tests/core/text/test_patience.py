"""Patience diff of sequences: correct on any input, readable on edits, bounded on hostile input."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.text.patience import MAX_DEPTH, diff_sequences, find_matching_blocks


class CountedItem:
    """An item that counts how often items are hashed and compared."""

    operations = 0

    def __init__(self, value: str) -> None:
        self.value = value

    def __hash__(self) -> int:
        CountedItem.operations += 1
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        CountedItem.operations += 1
        return isinstance(other, CountedItem) and self.value == other.value


def nested_anchors(depth: int) -> tuple[list[str], list[str]]:
    """Return sequences with one anchor; the next item becomes unique only in the part before it."""
    old = [item for number in range(depth, 0, -1) for item in (f"u{number}", f"u{number + 1}")]
    # Items that only the new sequence has, so that no part has a common start or end.
    new = ["first"]
    for number in range(depth, 0, -1):
        new += [f"u{number}", f"u{number + 1}", f"only new {number}"]
    return old, new


HOSTILE = {
    "equal lines, last differs": (["same"] * 3_000, ["same"] * 2_999 + ["other"]),
    "two lines in turn": (["a", "b"] * 3_000, ["b", "a"] * 3_000),
    "reversed": ([str(n) for n in range(5_000)], [str(n) for n in range(4_999, -1, -1)]),
    "nothing in common": (["a"] * 5_000, ["b"] * 5_000),
    "an anchor at each depth": nested_anchors(1_000),
}


def count_operations(old: list[str], new: list[str]) -> int:
    first, second = [CountedItem(item) for item in old], [CountedItem(item) for item in new]
    CountedItem.operations = 0
    find_matching_blocks(first, second)
    return CountedItem.operations


@pytest.mark.parametrize("case", HOSTILE)
def test_the_work_grows_with_the_length_and_not_with_its_square(case):
    old, new = HOSTILE[case]
    assert count_operations(old, new) <= 10 * MAX_DEPTH * (len(old) + len(new))


@pytest.mark.slow
def test_the_depth_limit_is_what_bounds_the_work(monkeypatch):
    # Without the limit the work grows with the square: a shorter sequence shows it as well.
    old, new = nested_anchors(400)
    bounded = count_operations(old, new)
    monkeypatch.setattr("core.text.patience.MAX_DEPTH", 10_000)
    assert count_operations(old, new) > 5 * bounded


ITEMS = st.lists(st.sampled_from("abcdefgh"), max_size=40)


@settings(deadline=None)
@given(ITEMS, ITEMS)
def test_blocks_cover_both_sequences_and_equal_blocks_are_equal(old, new):
    i = j = 0
    for block in diff_sequences(old, new):
        assert (block.i1, block.j1) == (i, j)
        assert (block.kind == "equal") == (old[block.i1 : block.i2] == new[block.j1 : block.j2])
        i, j = block.i2, block.j2
    assert (i, j) == (len(old), len(new))


@settings(deadline=None)
@given(st.lists(st.integers(), unique=True, max_size=40), st.data())
def test_edits_of_different_lines_are_found_exactly(old, data):
    kept = data.draw(st.lists(st.booleans(), min_size=len(old), max_size=len(old)))
    new = [item for item, is_kept in zip(old, kept, strict=True) if is_kept]
    matched = sum(block.length for block in find_matching_blocks(old, new))
    assert matched == len(new)


def test_a_moved_paragraph_is_one_removal_and_one_addition():
    old, new = ["t", "p1", "p2", "", "q1", "", "r1"], ["t", "q1", "", "r1", "", "p1", "p2"]
    changed = [block for block in diff_sequences(old, new) if block.kind == "changed"]
    assert [(old[b.i1 : b.i2], new[b.j1 : b.j2]) for b in changed] == [
        (["p1", "p2", ""], []),
        ([], ["", "p1", "p2"]),
    ]
