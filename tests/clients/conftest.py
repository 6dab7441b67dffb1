"""A stand-in server and both kinds of client."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from dramatis_client import retrying
from tests.clients.drivers import Blocking, Driver, Looping, Make
from tests.clients.standing import StandIn, standing


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with standing() as server:
        yield server


@pytest.fixture
def make_either() -> Iterator[Callable[..., Driver]]:
    """Makes clients of the kind that is named first, and closes them in the end."""
    made: list[Driver] = []

    def make(kind: type[Blocking] | type[Looping], url: str, *args: Any, **options: Any) -> Driver:
        made.append(kind(url, *args, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture(params=[Blocking, Looping], ids=["sync", "async"])
def make_client(request: pytest.FixtureRequest, make_either: Callable[..., Driver]) -> Make:
    """Makes clients of one kind; the test runs once for each."""
    return partial(make_either, request.param)


@pytest.fixture
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries are a hundredth as long."""
    monkeypatch.setattr(retrying, "FIRST_WAIT", 0.0025)
