"""Golden tests: the exact text of every example of every layout."""

import pytest

from prompts.assembly.layouts import LAYOUTS
from tests.prompts.assembly.goldens import GOLDEN, examples

ALL = list(examples())


@pytest.mark.parametrize("example", ALL, ids=str)
def test_an_example_gives_its_golden_text(example):
    assert example.prompt().text == example.golden.read_text(encoding="utf-8")


def test_every_layout_has_a_full_and_a_bare_example():
    names = {(example.layout, example.name) for example in ALL}
    assert {(layout, name) for layout in LAYOUTS for name in ("full", "bare")} <= names


def test_no_golden_text_is_left_without_its_example():
    known = {example.golden for example in ALL}
    assert {path for path in GOLDEN.glob("*/*.txt") if path not in known} == set()
