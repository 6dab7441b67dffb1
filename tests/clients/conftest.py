"""Fixtures: a stub server, the real server, and both kinds of client."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from dramatis_client import retries
from prompts.serving import ledger_writer
from tests.clients.drivers import AsyncDriver, BlockingDriver, ClientFactory, Driver
from tests.clients.live import LiveServer
from tests.clients.stub_server import StubServer, run_stub_server
from tests.workers import wait_for


@pytest.fixture
def stub_server() -> Iterator[StubServer]:
    with run_stub_server() as server:
        yield server


@pytest.fixture(scope="module")
def process(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = LiveServer(tmp_path_factory.mktemp("live") / "log")
    yield server
    server.kill()
    # Its connections close a little later, and a database in use cannot be dropped.
    wait_for(server.is_disconnected)


@pytest.fixture
def server(process: LiveServer, transactional_db: None) -> Iterator[LiveServer]:
    """The server, restarted if the previous test has killed it."""
    if not process.is_running:
        process.start()
    yield process
    # A database in use cannot be dropped.
    ledger_writer.PROCESS_WRITER.close()


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
