"""Fixtures for all tests: the browser, a real Celery worker; the cast and its records follow below."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from personas.actors import Actor
from personas.models import Agent, User, Workspace
from prompts.serving import lines, recalling
from tests.factories import join, make_agent, make_user, make_workspace, signed_in
from tests.isolation.cast import seeded, stage  # noqa: F401  # fixtures: two workspaces full of canaries
from tests.isolation.summary import pytest_terminal_summary  # noqa: F401  # says how many cells were asked
from tests.services import launch_arguments
from tests.workers import Worker, start_worker

# Playwright's sync interface runs an event loop, and Django then refuses the ORM in the same test.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


@pytest.fixture(scope="session")
def browser_type_launch_args(pytestconfig: pytest.Config) -> dict[str, object]:
    return launch_arguments(headed=bool(pytestconfig.getoption("--headed")))


@pytest.fixture(scope="session")
def celery_worker(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker process on the test database; tests that use it need committed rows (transaction=True)."""
    worker = start_worker(tmp_path_factory.mktemp("worker") / "log")
    yield worker
    worker.stop()


@pytest.fixture(scope="session", autouse=True)
def emptying_of_tables_that_only_grow() -> None:
    """SQLite is emptied between tests by DELETE, which append-only triggers refuse: lay them aside."""
    if connection.vendor != "sqlite":
        return
    flush = connection.ops.sql_flush

    def sql_flush(*args: Any, **kwargs: Any) -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            triggers = cursor.fetchall()
        dropped = [f"DROP TRIGGER {name}" for name, _ in triggers]
        return [*dropped, *flush(*args, **kwargs), *(sql for _, sql in triggers)]

    connection.ops.sql_flush = sql_flush  # type: ignore[method-assign]


@pytest.fixture(scope="session", autouse=True)
def emptying_beside_a_worker() -> None:
    """A worker that another test left running may hold a table that is to be emptied: then once more."""
    flush = connection.ops.execute_sql_flush

    def execute_sql_flush(statements: Any) -> None:
        for _ in range(10):
            try:
                return flush(statements)
            except OperationalError:
                time.sleep(0.2)
        return flush(statements)

    connection.ops.execute_sql_flush = execute_sql_flush  # type: ignore[assignment,method-assign]


# --- The cast: Alice owns a workspace, Bob is her member, Mallory is a stranger ------------------------


@pytest.fixture
def alice(db: None) -> User:
    return make_user("Alice")


@pytest.fixture
def bob(db: None) -> User:
    return make_user("Bob")


@pytest.fixture
def mallory(db: None) -> User:
    return make_user("Mallory")


@pytest.fixture
def workspace(alice: User, bob: User) -> Workspace:
    workspace = make_workspace("Harbour", owner=alice)
    join(workspace, bob)
    return workspace


@pytest.fixture
def elsewhere(mallory: User) -> Workspace:
    """A workspace of which Alice and Bob know nothing."""
    return make_workspace("Elsewhere", owner=mallory)


@pytest.fixture
def agent(workspace: Workspace) -> Agent:
    return make_agent(workspace, "pilot")


@pytest.fixture
def by_alice(alice: User) -> Actor:
    return Actor.person(alice)


@pytest.fixture
def as_alice(alice: User, workspace: Workspace) -> Client:
    return signed_in(alice)


@pytest.fixture
def as_bob(bob: User, workspace: Workspace) -> Client:
    return signed_in(bob)


@pytest.fixture
def as_mallory(mallory: User, elsewhere: Workspace) -> Client:
    return signed_in(mallory)


@pytest.fixture(autouse=True)
def no_line_outlives_its_test() -> Iterator[None]:
    """Fetches outside of a test's own transaction open one, and a database in use cannot be removed."""
    yield
    lines.PROCESS.close()


@pytest.fixture(autouse=True)
def no_process_remembers_another_test() -> None:
    """What a test has taken back did not happen, and its ids are given again."""
    recalling.PROCESS.guesses.clear()
    recalling.PROCESS.words.clear()
