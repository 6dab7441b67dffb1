"""Cases that each cost a page: some in every run, others the next time, and all among the long proofs."""

import random
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")
SOME = 3


def some(cases: Iterable[T]) -> list[T]:
    """Which ones says the run's seed, so a failure comes again with it."""
    return random.sample(list(cases), SOME)


# The test takes `chosen`, and goes through `chosen(its cases)`.
SOME_OR_ALL = pytest.mark.parametrize(
    "chosen", [some, pytest.param(list, marks=pytest.mark.hard)], ids=["some", "all"]
)
