"""Fixtures of the real server in a separate process. Import them where they are used."""

from collections.abc import Iterator

import pytest

from prompts.serving import ledger_writer
from tests.clients.live import LiveServer
from tests.workers import wait_for


@pytest.fixture(name="process", scope="module")
def server_process(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    server = LiveServer(tmp_path_factory.mktemp("live") / "log")
    yield server
    server.kill()
    # Its connections close a little later, and a database in use cannot be dropped.
    wait_for(server.is_disconnected)


@pytest.fixture(name="server")
def running_server(process: LiveServer, transactional_db: None) -> Iterator[LiveServer]:
    """The server, restarted if the previous test has killed it."""
    if not process.is_running:
        process.start()
    yield process
    # A database in use cannot be dropped.
    ledger_writer.PROCESS_WRITER.close()
