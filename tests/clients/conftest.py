"""Fixtures: a stub server, the real server, and both kinds of client."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from dramatis_client import retries
from tests.clients.drivers import AsyncDriver, BlockingDriver, ClientFactory, Driver
from tests.clients.live_fixtures import running_server, server_process  # noqa: F401  # fixtures
from tests.clients.stub_server import StubServer, run_stub_server


@pytest.fixture
def stub_server() -> Iterator[StubServer]:
    with run_stub_server() as server:
        yield server


@pytest.fixture
def make_client_of_kind() -> Iterator[Callable[..., Driver]]:
    """Return a factory of clients of the given kind; they are closed after the test."""
    drivers: list[Driver] = []

    def make(kind: type[BlockingDriver] | type[AsyncDriver], url: str, *args: Any, **options: Any) -> Driver:
        drivers.append(kind(url, *args, **options))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.close()


@pytest.fixture(params=[BlockingDriver, AsyncDriver], ids=["sync", "async"])
def make_client(request: pytest.FixtureRequest, make_client_of_kind: Callable[..., Driver]) -> ClientFactory:
    """Return a factory of clients; the test runs once for each kind."""
    return partial(make_client_of_kind, request.param)


@pytest.fixture
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the delays between retries a hundred times shorter."""
    monkeypatch.setattr(retries, "BASE_DELAY", 0.0025)
