"""Fixtures for all tests: browser, Celery worker, database, users and their records."""

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
import time_machine
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.db import connection
from django.test import Client
from django.utils import timezone

from personas.actors import Actor
from personas.limits import persons, storage_quota
from personas.models import Agent, User, Workspace
from project.distribution.services import distribute, plan_distribution
from prompts.publishing.versions import lockfile
from prompts.serving import cache, ledger_writer
from prompts.serving.call_contents import services as call_data
from tests.api_client import admin, bot, full_budgets, key_for  # noqa: F401  # fixtures
from tests.compiled_queries import use_own_forms
from tests.database_cleanup import install_fast_flush
from tests.database_dump import READY, keep_database, ready_database
from tests.database_ids import separate_ids
from tests.factories import join, make_agent, make_user, make_workspace, signed_in
from tests.isolation.summary import pytest_terminal_summary  # noqa: F401  # prints the number of isolation cells
from tests.ledger_rows import write_in_open_transactions
from tests.pytest_servers import get_citus_cluster, launch_arguments
from tests.servers import Server, start_redis
from tests.workers import Worker, start_worker, talking_to

# Playwright's sync interface runs an event loop, and Django then refuses the ORM in the same test.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


def pytest_collection_finish() -> None:
    """Exclude loaded objects from garbage collection, which would take a tenth of the run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> None:
    """Use cheap parameters for password hashes; no test depends on their cost."""
    hasher: Any = Argon2PasswordHasher
    hasher.time_cost, hasher.memory_cost, hasher.parallelism = 1, 8, 1


@pytest.fixture(scope="session", autouse=True)
def ledger_rows_in_transactions() -> None:
    write_in_open_transactions()


@pytest.fixture(scope="session")
def browser_type_launch_args(pytestconfig: pytest.Config) -> dict[str, object]:
    return launch_arguments(headed=bool(pytestconfig.getoption("--headed")))


@pytest.fixture(scope="session")
def celery_worker(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A Celery worker on the test database; tests that use it need committed rows (transaction=True)."""
    worker = start_worker(tmp_path_factory.mktemp("worker") / "log")
    yield worker
    worker.kill()


@pytest.fixture
def own_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A broker for this test's workers: `celery_worker` lives until the end and would take their jobs."""
    broker = start_redis()
    monkeypatch.setenv("REDIS_URL", broker.url)
    try:
        with talking_to(broker.url):
            yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Copy the migrated database of an earlier run, if it matches the migrations.

    Transactions of this process may be idle: rows of a module are in one, and the next test of a module may
    be held back while other processes have tests left.
    """
    if connection.vendor != "postgresql":
        return
    connection.settings_dict["OPTIONS"]["options"] += " -c idle_in_transaction_session_timeout=0"
    if name := ready_database(will_keep=True):
        connection.settings_dict["TEST"] |= {"TEMPLATE": name, "MIGRATE": False}


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """The database, with a range of ids for each table, and a faster way to empty its tables."""
    if connection.vendor == "postgresql":
        keep_database(str(connection.settings_dict["NAME"]))
        if get_citus_cluster() is None:
            with django_db_blocker.unblock():
                separate_ids()
    install_fast_flush()


@pytest.fixture(scope="session", autouse=True)
def distributed_database(request: pytest.FixtureRequest) -> None:
    """With TEST_DATABASE=citus, spread the tables of the test database over the nodes."""
    cluster = get_citus_cluster()
    if cluster is None:
        return
    request.getfixturevalue("django_db_setup")
    blocker = request.getfixturevalue("django_db_blocker")
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # of the PostgreSQL backend
    name = str(connection.settings_dict["NAME"])
    if not name.startswith("test_"):
        # No collected test uses the test database, so there is none.
        return
    # For tests with databases of their own.
    cluster.coordinator.execute("postgres", f"CREATE DATABASE {READY} TEMPLATE {name}")
    cluster.connect_nodes(name)
    with blocker.unblock():
        catalog, steps = plan_distribution()
        distribute(steps, catalog, print)
        # Settings of the database are those of new connections.
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # of the PostgreSQL backend


# --- users: Alice owns a workspace, Bob is a member, Mallory is an outsider ----------------------------


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
    """A workspace that Alice and Bob are not members of."""
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
def close_ledger_writer() -> Iterator[None]:
    """Close the ledger connection.

    Fetches outside a test's transaction open one, and a database in use cannot be dropped.
    """
    yield
    ledger_writer.close_writers()


@pytest.fixture(autouse=True)
def clear_serving_cache() -> Iterator[None]:
    """Clear the caches of database rows: rows are rolled back after a test, and their ids are reused.

    After the test as well, because fixtures of a module are set up before this one.
    """
    clear_caches()
    yield
    clear_caches()


@pytest.fixture(autouse=True)
def own_forms_of_planted_faults(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("planted"):
        use_own_forms(request.getfixturevalue("monkeypatch"))


@pytest.fixture
def stopped_clock() -> Iterator[None]:
    """The clock of this process stands still: for tests that fail if a day ends between two reads of it."""
    with time_machine.travel(timezone.now(), tick=False):
        yield


def clear_caches() -> None:
    cache.PROCESS_CACHE.resolutions.clear()
    cache.PROCESS_CACHE.versions.clear()
    storage_quota.PROCESS_RESERVATIONS.clear()
    storage_quota.PERSON_RESERVATIONS.clear()
    persons.forget_persons()
    call_data.CACHED_DIGESTS.clear()
    lockfile.CACHED_PARTS.clear()
