"""Parametrization for slow cases: a random sample in every run, all of them in the runs marked `hard`."""

import random
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")
SOME = 3


def sample_cases(cases: Iterable[T]) -> list[T]:
    """Return a random sample; it depends on the seed of the test run, so a failure can be reproduced."""
    return random.sample(list(cases), SOME)


# The test takes the argument `chosen` and iterates over `chosen(cases)`.
SOME_OR_ALL = pytest.mark.parametrize(
    "chosen", [sample_cases, pytest.param(list, marks=pytest.mark.hard)], ids=["some", "all"]
)
