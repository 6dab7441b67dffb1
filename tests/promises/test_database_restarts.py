"""R7: the database may restart; requests meanwhile get 503 with Retry-After, and no process is restarted."""

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest

from prompts.models import PromptVersion
from prompts.tasks import sweep_prompts_job
from tests.promises import FAULT
from tests.promises.cluster import Cluster, cluster
from tests.promises.installation import LIVE_SECONDS, Installation, Web, edit_now, seconds_until_live
from tests.promises.load import LoadGenerator, LoadRequest, LoadResponse, RequestFactory
from tests.promises.stopped_worker import GATE, POINT
from tests.servers import start_redis
from tests.workers import Worker, talking_to, wait_for

RESTARTS = ("fast", "immediate") * 5
RECOVERED_SECONDS, THREADS = 5.0, 6
# Requests before each restart, and successful requests in a row after it that end the outage: each of the
# six threads has then sent every kind of request.
WARM, STEADY = 48, 72
# Requests after a restart without load.
QUIET = 48


@pytest.fixture(scope="module")
def database():
    with cluster() as instance:
        yield instance


@pytest.fixture(scope="module")
def installation(database, tmp_path_factory):
    installation = Installation(tmp_path_factory.mktemp("restarts"), database.url)
    database.load_tables()
    installation.build()
    yield installation
    installation.close()


def request_maker(installation: Installation):
    """Requests through the ledger writer, the API's connection pool, and pages with a session."""
    requests = RequestFactory(installation.facts)

    def make_request(who: int, turn: int) -> LoadRequest:
        if turn % 8 == 1:
            return requests.edit(who, f"Be {who}, for the {turn}th time.")
        if turn % 4 == 2:
            return requests.read()
        return requests.page() if turn % 8 == 3 else requests.fetch(who + turn)

    return make_request


@dataclass
class Restart:
    """When the database accepted connections again, the last failure, and whether requests then succeeded."""

    up: float
    last_failure: float
    is_steady: bool

    @property
    def seconds(self) -> float:
        return max(0.0, self.last_failure - self.up)


def restart(database: Cluster, load: LoadGenerator, mode: str) -> Restart:
    before = load.served
    load.wait_for(lambda: load.served >= before + WARM, 20)
    database.stop(mode)
    up = database.start()
    is_steady = load.wait_for(lambda: is_steady_since(load.responses, up), RECOVERED_SECONDS * 3)
    failures = [one.ended for one in list(load.responses) if not one.is_served]
    return Restart(up, max(failures, default=up), is_steady)


def is_steady_since(responses: list[LoadResponse], up: float) -> bool:
    latest = responses[-STEADY:]
    return all(one.is_served and one.began > up for one in latest)


def restart_repeatedly(
    database: Cluster, installation: Installation, web: Web, modes
) -> tuple[list[Restart], list[LoadResponse]]:
    with LoadGenerator(web.url, request_maker(installation), THREADS) as load:
        load.is_open.set()
        restarts = [restart(database, load, mode) for mode in modes]
    return restarts, [one for one in load.responses if not one.is_served]


def wrong_failures(failures: list[LoadResponse]) -> Counter[tuple[str, int, str]]:
    """Count failures that are not 503 or lack Retry-After."""
    bad = [one for one in failures if one.status != 503 or not one.retry_after]
    return Counter((one.request.kind, one.status, one.retry_after) for one in bad)


def failures_after_idle_restart(
    database: Cluster, installation: Installation, web: Web
) -> list[LoadResponse]:
    """Restart the database while connections are idle in the pool.

    Return the failures of the next requests.
    """
    make_request = request_maker(installation)
    with LoadGenerator(web.url, make_request, THREADS) as load:
        assert all(one.is_served for one in load.send(WARM))
        time.sleep(0.2)
        database.stop("fast")
        database.start()
        return [one for one in load.send(QUIET) if not one.is_served]


@pytest.mark.hard
@pytest.mark.promise("R7")
def test_the_database_restarts_ten_times_under_load(database, installation, record_property):
    with installation.web() as web:
        before = web.processes()
        restarts, failures = restart_repeatedly(database, installation, web, RESTARTS)
        quiet = failures_after_idle_restart(database, installation, web)
        after = web.processes()
    slowest = max(one.seconds for one in restarts)
    record_property(
        "measured",
        f"{len(restarts)} restarts: {len(failures)} calls failed, {sum(wrong_failures(failures).values())} "
        f"without 503 and Retry-After; steady ≤ {slowest:.1f} s after it took connections; {len(quiet)} "
        f"failures after a restart without load; {len({*after} ^ {*before})} processes changed",
    )
    assert wrong_failures(failures) == {}
    assert failures, "nobody asked while the database was away"
    assert all(one.is_steady for one in restarts)
    assert slowest <= RECOVERED_SECONDS
    assert quiet == []
    assert after == before


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R7")
def test_database_errors_without_translation_are_found(database, installation):
    with installation.web("without_translation") as web:
        _, failures = restart_repeatedly(database, installation, web, ["fast"])
    assert any(one.status == 500 for one in failures)
    assert wrong_failures(failures)


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R7")
def test_missing_connection_health_checks_are_found(database, installation):
    with installation.web("without_health_checks") as web:
        assert failures_after_idle_restart(database, installation, web)


# --- a worker in the middle of a job ---------------------------------------------------------------------


@pytest.fixture
def with_broker(installation, tmp_path):
    """The same installation with a broker, and with builds by workers only."""
    server = start_redis()
    with talking_to(server.url):
        copy = replace(installation, folder=tmp_path, redis=server.url, fork_servers={})
        yield copy
        copy.close()
    server.stop()


STOPPED_WORKER = "tests.promises.stopped_worker"


def runs_next_job(worker: Worker) -> bool:
    """Send the job that the schedule sends every 30 seconds; return whether it succeeds."""
    job_id = sweep_prompts_job.delay().id
    return bool(wait_for(lambda: has_succeeded(worker, job_id), 5))


def has_succeeded(worker: Worker, job_id: str) -> bool:
    return any("task_succeeded" in line and job_id in line for line in worker.log.read_text().splitlines())


@pytest.mark.hard
@pytest.mark.promise("R7")
def test_a_database_restart_in_the_middle_of_a_job_delays_the_job(
    database, with_broker, tmp_path, record_property
):
    gate = tmp_path / "gate"
    where = {GATE: str(gate), POINT: PromptVersion._meta.db_table}
    with (
        with_broker.jobs(STOPPED_WORKER, **where) as (worker, _),
        with_broker.web(DRAMATIS_BUILD_AT_ONCE="0") as web,
    ):
        processes = worker.pool()
        gate.touch()
        edit_now(web, "Be restarted.")
        # The worker has inserted the version and not committed it.
        assert wait_for(gate.with_suffix(".reached").exists, 20), worker.log.read_text()[-3_000:]
        database.stop("immediate")
        database.start()
        gate.unlink()
        seconds = seconds_until_live(web, "Be restarted.")
        assert runs_next_job(worker), worker.log.read_text()[-3_000:]
        assert worker.pool() == processes
    facts = check_history(with_broker)
    record_property(
        "measured",
        f"restarted while a worker built a version: it was live {seconds:.0f} s later, by the same worker; "
        f"{facts['versions']:,} versions, {len(facts['torn'])} torn, {facts['bad rows']} bad rows",
    )
    assert seconds <= LIVE_SECONDS
    assert (facts["torn"], facts["bad rows"], facts["broken links"]) == ([], 0, 0), facts


def check_history(installation: Installation) -> dict[str, Any]:
    (installation.folder / "acknowledged.json").write_text('{"fetches": {}, "edits": []}')
    return installation.scene("check")


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R7")
def test_a_worker_that_keeps_its_connection_is_found(database, with_broker):
    with with_broker.jobs(STOPPED_WORKER, **{FAULT: "kept_connections"}) as (worker, _):
        assert runs_next_job(worker), worker.log.read_text()[-3_000:]
        database.stop("fast")
        database.start()
        assert not runs_next_job(worker)
