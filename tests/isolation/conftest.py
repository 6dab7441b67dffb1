"""Fixtures of the isolation tests: the data is seeded once, because seeding takes as long as hundreds of requests."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.isolation.cast import Stage, set_stage, settled_memory, undone
from tests.isolation.matrix import Outcome, digests
from tests.isolation.summary import CELLS, LEAKS


@pytest.fixture(scope="package")
def seeded(django_db_setup: None, django_db_blocker: Any) -> Iterator[Stage]:
    with django_db_blocker.unblock(), undone(), settled_memory():
        stage = set_stage()
        stage.before = digests(stage)
        yield stage


@pytest.fixture
def stage(seeded: Stage) -> Iterator[Stage]:
    """The seeded data, rolled back after each test."""
    with undone():
        yield seeded


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Record the number of cells for the summary line, and fail with all findings at once."""

    def close(outcome: Outcome, at_least: int = 1) -> None:
        record_property(CELLS, outcome.cells)
        record_property(LEAKS, len(outcome.findings))
        assert outcome.cells >= at_least
        shown = "\n".join(outcome.findings[:100])
        assert not outcome.findings, f"{len(outcome.findings)} of {outcome.cells} cells are wrong:\n{shown}"

    return close
