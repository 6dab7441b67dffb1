"""Fixtures for all tests: the browser, a real Celery worker; the cast and its records follow below."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import find_chromium
from tests.workers import Worker, start_worker

# Playwright's sync interface runs an event loop, and Django then refuses the ORM in the same test.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser_type_launch_args(pytestconfig: pytest.Config) -> dict[str, object]:
    program = find_chromium()
    if program is None or not Path(program).exists():
        pytest.fail(
            "This test needs Chromium and there is none: run dev.py test, or set CHROMIUM to its path."
        )
    # Chromium refuses its sandbox to root.
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    headless = not pytestconfig.getoption("--headed")
    return {"executable_path": program, "args": [*QUIET, *sandbox], "headless": headless}


@pytest.fixture(scope="session")
def celery_worker(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker process on the test database; tests that use it need committed rows (transaction=True)."""
    worker = start_worker(tmp_path_factory.mktemp("worker") / "log")
    yield worker
    worker.stop()
