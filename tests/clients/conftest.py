"""A stand-in server and both kinds of client."""

from collections.abc import Iterator
from typing import Any

import pytest

from dramatis_client import retrying
from tests.clients.drivers import Blocking, Driver, Looping, Make
from tests.clients.standing import StandIn, standing


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with standing() as server:
        yield server


@pytest.fixture(params=[Blocking, Looping], ids=["sync", "async"])
def make_client(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Makes clients and closes them in the end."""
    made: list[Driver] = []

    def make(url: str, *args: Any, **options: Any) -> Driver:
        made.append(request.param(url, *args, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries are a hundredth as long."""
    monkeypatch.setattr(retrying, "FIRST_WAIT", 0.0025)
