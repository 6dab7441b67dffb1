"""The order of a parallel run: each process begins with its own groups, and no test is lost."""

import random
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.layout import ROOT
from tests.pytest_servers import (
    ALWAYS,
    COLLECTED_IDS,
    LEADING_GROUPS,
    SLOW_TESTS,
    TURNS,
    distribute,
    list_left_out,
)


@dataclass(frozen=True)
class Item:
    nodeid: str
    marker: str = ""

    def get_closest_marker(self, name: str) -> str | None:
        return name if self.marker == name else None


def make_items(each: int, others: int) -> list[Any]:
    """Return tests of every leading group among many others."""
    names = [
        f"{prefix}::test_{number}" for group in LEADING_GROUPS for prefix in group for number in range(each)
    ]
    items = [
        Item(name) for name in {*names, *(f"tests/core/test_{number}.py::test" for number in range(others))}
    ]
    random.shuffle(items)
    return items


def split_like_xdist(items: list[Any], processes: int) -> list[list[Any]]:
    rest, parts = list(items), []
    for number in range(processes):
        size = len(rest) // (processes - number)
        parts.append(rest[:size])
        rest = rest[size:]
    return parts


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 9])
def test_every_process_begins_with_its_groups(processes):
    items = make_items(each=2, others=1_000)
    ordered = distribute(items, processes)
    assert sorted(ordered, key=str) == sorted(items, key=str)
    for number, part in enumerate(split_like_xdist(ordered, processes)):
        own = [item for item in part if not item.nodeid.startswith("tests/core/")]
        assert part[: len(own)] == own
        assert {number_of_group(item.nodeid) % processes for item in own} <= {number}


def test_lone_tests_are_the_first_of_the_first_process():
    items = make_items(each=2, others=100)
    lone = [replace(item, marker="alone") for item in items[:2]]
    assert distribute([*items[2:], *lone], 3)[:2] == lone


def number_of_group(name: str) -> int:
    return next(number for number, group in enumerate(LEADING_GROUPS) if name.startswith(group))


def test_a_group_that_is_longer_than_a_part_loses_no_test():
    items = make_items(each=50, others=3)
    assert sorted(distribute(items, 3), key=str) == sorted(items, key=str)


def test_every_slow_test_exists(request):
    collected = {name.partition("[")[0] for name in request.config.stash[COLLECTED_IDS]}
    files = {name.partition("::")[0] for name in collected}
    known = [name for name in SLOW_TESTS if name.partition("::")[0] in files]
    assert [name for name in known if name not in collected] == []
    assert [
        name
        for name in SLOW_TESTS
        if not name.startswith("#") and not (ROOT / name.partition("::")[0]).exists()
    ] == []


def test_four_turns_run_every_slow_test_once_and_the_others_each_time():
    slow: list[Any] = [
        Item(f"tests/{file}.py::test_{n}", mark) for file in "ab" for n in range(5) for mark in ["browser"]
    ]
    slow += [Item(f"tests/c.py::test_{n}", "slow") for n in range(4)]
    others: list[Any] = [Item("tests/a.py::test_quick"), Item(f"{ALWAYS}::test_tour", "browser")]
    left_out: list[Any] = [list_left_out([*slow, *others], turn) for turn in range(TURNS)]
    run = [item for turn in left_out for item in slow if item not in turn]
    assert sorted(run, key=str) == sorted(slow, key=str)
    assert not {item for turn in left_out for item in turn} & set(others)
