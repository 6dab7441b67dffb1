"""10,000 fetches and 500 edits of two workspaces through four server connections of PgBouncer.

`PGBOUNCER_FETCHES` changes the number. Web and worker are real processes with the restricted role.
"""

import os
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Thread

import psycopg
import pytest

from tests.project.backup.backup_stage import manage
from tests.project.database.pgbouncer import PASSWORD, Pooler, needs_pgbouncer, run_pgbouncer
from tests.promises.installation import Installation, Web, migrated_database
from tests.promises.load import LoadGenerator, LoadRequest, LoadResponse, RequestFactory
from tests.workers import wait_for

pytestmark = [*needs_pgbouncer, pytest.mark.hard]
SLUGS, THREADS, SERVER_CONNECTIONS = ("harbour", "quarry"), 16, 4
FETCHES = int(os.environ.get("PGBOUNCER_FETCHES", "10000"))
EDIT_EVERY, READ_EVERY = 20, 50
TIMEOUT = 600.0
ROLE = f"app_load_{os.getpid()}"
FAILURES = ("Traceback", "ledger_write_failed", "inline_build_failed", "prepared statement")


def get_marker(slug: str) -> str:
    return f"This text belongs to {slug}."


@dataclass
class PooledInstallation:
    """The installation of the owner, its pooler, and the environment of web and worker."""

    installation: Installation
    pooler: Pooler
    environment: dict[str, str]

    def web(self, fault: str = ""):
        return self.installation.web(fault, **self.environment)

    def jobs(self):
        return self.installation.jobs(**self.environment)

    def check(self) -> dict:
        return self.installation.scene("check")


@pytest.fixture
def pooled(tmp_path):
    with migrated_database(tmp_path, "postgresql") as url:
        installation = Installation(tmp_path, url, scene_module="tests.project.database.pooled_scene")
        installation.build()
        created = manage(url, "create_db_role", ROLE, DATABASE_APP_PASSWORD=PASSWORD)
        assert created.returncode == 0, created.stderr
        app_url = url.replace("postgres@", f"{ROLE}@", 1)
        limits = {"default_pool_size": str(SERVER_CONNECTIONS), "max_db_connections": str(SERVER_CONNECTIONS)}
        with run_pgbouncer(url, ROLE, **limits) as pooler:
            (name,) = psycopg.connect(url).execute("SELECT current_database()").fetchone()
            environment = {"DATABASE_URL": app_url, "DATABASE_POOLED_URL": pooler.url(name)}
            yield PooledInstallation(installation, pooler, environment)
            installation.close()
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute(f"DROP ROLE {ROLE}")


@dataclass
class Probe:
    """Another client of the pooler, which has no scope and must see no row of any workspace."""

    pooled: PooledInstallation
    looks: int = 0
    seen: Counter = field(default_factory=Counter)
    scopes: set = field(default_factory=set)
    server_connections: int = 0
    stopping: Event = field(default_factory=Event)

    def __enter__(self):
        self.thread = Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def run(self) -> None:
        query = "SELECT current_setting('dramatis.workspace', true), (SELECT count(*) FROM personas_soul)"
        pooled_url = self.pooled.environment["DATABASE_POOLED_URL"]
        with closing(psycopg.connect(pooled_url, autocommit=True, prepare_threshold=None)) as client:
            while not self.stopping.wait(0.01):
                scope, souls = client.execute(query).fetchone()
                self.looks += 1
                self.seen[souls] += 1
                self.scopes.add(scope or "")
                number = len([one for one in self.pooled.pooler.console("SHOW SERVERS") if one["user"] == ROLE])
                self.server_connections = max(self.server_connections, number)


def send_load(web: Web, facts: dict, fetches: int) -> list[LoadResponse]:
    factories, numbers = {slug: RequestFactory(facts[slug]) for slug in SLUGS}, count()

    def make_request(who: int, turn: int) -> LoadRequest:
        slug, number = SLUGS[who % 2], next(numbers)
        requests = factories[slug]
        if number % EDIT_EVERY == 0:
            edit = requests.edit(who // 2, f"{get_marker(slug)} Thread {who}, turn {turn}.")
            return LoadRequest("edit", edit.spec, slug)
        if number % READ_EVERY == 1:
            return LoadRequest("read", requests.read().spec, slug)
        return LoadRequest("prompt", requests.fetch(number).spec, slug)

    total = int(fetches / (1 - 1 / EDIT_EVERY - 1 / READ_EVERY)) + THREADS
    with LoadGenerator(web.url, make_request, THREADS, timeout=30) as load:
        return load.send(total, TIMEOUT)


def list_foreign(responses: list[LoadResponse]) -> list[LoadResponse]:
    """The responses that lack the text of their workspace, or have that of the other."""
    return [
        response
        for response in responses
        for slug in [response.request.target]
        for other in set(SLUGS) - {slug}
        if get_marker(slug).encode() not in response.body or get_marker(other).encode() in response.body
    ]


def edit_shared_soul(web: Web, facts: dict, slug: str, text: str) -> None:
    requests = RequestFactory(facts[slug])
    with LoadGenerator(web.url, lambda *_: requests.edit(-1, text), 1) as load:
        (response,) = load.send(1)
    assert response.is_served


def is_served_everywhere(web: Web, facts: dict, slug: str, text: str) -> bool:
    requests = RequestFactory(facts[slug])
    indexes = iter(range(8, len(facts[slug]["agents"])))
    with LoadGenerator(
        web.url, lambda *_: LoadRequest("prompt", requests.fetch(next(indexes)).spec), 1
    ) as load:
        responses = load.send(len(facts[slug]["agents"]) - 8)
    return all(text.encode() in response.body for response in responses)


def test_pages_fetches_edits_and_workers_behind_a_pooler(pooled, record_property):
    facts = pooled.installation.facts
    with pooled.jobs() as workers, pooled.web() as web:
        with Probe(pooled) as probe:
            began = time.monotonic()
            responses = send_load(web, facts, FETCHES)
            seconds = time.monotonic() - began
            for slug in SLUGS:
                text = f"{get_marker(slug)} Built by a worker."
                edit_shared_soul(web, facts, slug, text)
                assert wait_for(lambda: is_served_everywhere(web, facts, slug, text), 60)  # noqa: B023
        logs = web.log.read_text() + "".join(worker.log.read_text() for worker in workers)
        wait_for(lambda: not any(one["waiting"] for one in pooled.check().values()), 60)
    kinds = Counter(response.request.kind for response in responses)
    result = pooled.check()
    record_property(
        "measured",
        f"{kinds['prompt']:,} fetches, {kinds['edit']} edits and {kinds['read']} lists in {seconds:.1f} s by "
        f"{THREADS} connections, {probe.server_connections} server connections; a client without a scope "
        f"saw {dict(probe.seen)} rows in {probe.looks} queries; {result}",
    )
    assert [response for response in responses if not response.is_served] == []
    assert kinds["prompt"] >= FETCHES
    assert kinds["edit"] >= FETCHES / EDIT_EVERY
    assert list_foreign([response for response in responses if response.request.kind != "edit"]) == []
    assert (set(probe.seen), probe.scopes) == ({0}, {""})
    assert probe.server_connections <= SERVER_CONNECTIONS
    assert [word for word in FAILURES if word in logs] == []
    edits = Counter(one.request.target for one in responses if one.request.kind == "edit")
    for slug in SLUGS:
        assert {**result[slug], "rows": 0} == {
            "rows": 0,
            "rows of others": 0,
            "edits": edits[slug] + 1,
            "waiting": 0,
            "bad rows": 0,
        }
    assert sum(one["rows"] for one in result.values()) >= kinds["prompt"]


@pytest.mark.planted
def test_a_scope_of_the_session_is_seen_by_another_client(pooled):
    with pooled.web("session_scope") as web, Probe(pooled) as probe:
        send_load(web, pooled.installation.facts, 500)
    assert set(probe.seen) != {0}
