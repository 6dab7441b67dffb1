"""Fixtures of the isolation tests.

The data is seeded once, because seeding takes as long as hundreds of requests.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.isolation.cast import Stage, frozen_gc, rolled_back, set_stage
from tests.isolation.matrix import Outcome, digests
from tests.isolation.summary import CELLS, LEAKS


@pytest.fixture(autouse=True)
def local_webhooks(settings: Any) -> None:
    """Allow the URL in the rows of webhooks, so that no name must be resolved."""
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.1/32"]


@pytest.fixture(scope="package")
def seeded(django_db_setup: None, django_db_blocker: Any) -> Iterator[Stage]:
    with django_db_blocker.unblock(), rolled_back(), frozen_gc():
        stage = set_stage()
        stage.before = digests(stage)
        yield stage


@pytest.fixture
def stage(seeded: Stage) -> Iterator[Stage]:
    """The seeded data, rolled back after each test."""
    with rolled_back():
        yield seeded


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Record the number of cells for the summary line, and fail with all findings at once."""

    def close(outcome: Outcome, at_least: int = 1) -> None:
        record_property(CELLS, outcome.cells)
        record_property(LEAKS, len(outcome.findings))
        assert outcome.cells >= at_least
        first = "\n".join(outcome.findings[:100])
        assert not outcome.findings, f"{len(outcome.findings)} of {outcome.cells} cells are wrong:\n{first}"

    return close
