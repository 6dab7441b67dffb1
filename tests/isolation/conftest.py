"""One stage for all of these modules: setting it takes as long as hundreds of questions."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.isolation.cast import Stage, set_stage, settled_memory, undone


@pytest.fixture(scope="package")
def seeded(django_db_setup: None, django_db_blocker: Any) -> Iterator[Stage]:
    with django_db_blocker.unblock(), undone(), settled_memory():
        yield set_stage()


@pytest.fixture
def stage(seeded: Stage) -> Iterator[Stage]:
    """The stage, put back as it was after each test."""
    with undone():
        yield seeded
