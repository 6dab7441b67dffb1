"""Read replica: which reads use it, which never do, and the fallback to the primary."""

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db import InternalError, connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from core.db import replica
from core.db.replica import RECENT_WRITE_COOKIE, REPLICA_ALIAS, REPLICA_HEALTH
from personas.models import AuditEvent
from project.doctor.checks import check_replica
from project.doctor.results import FindingState
from project.metrics.periodic import measure_metrics
from prompts.models import LedgerEntry
from tests.factories import make_memory, signed_in
from tests.project.database.replica_stage import (
    address_of,
    catch_up,
    pause_replay,
    query_cluster,
    standby,
    use_replica,
)
from tests.project.deployment.production_settings import COMPLETE, run_settings
from tests.prompts.serving.serving_stage import make_stage

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no replicas"),
]
# Environment variable of the process with its own servers.
ALONE = "DRAMATIS_TEST_STANDBY_ALONE"
# Pages of Alice's workspace that use the replica, and the table they read from it.
LAGGING = {
    "audit/": "personas_auditevent",
    "audit/export/?format=json": "personas_auditevent",
    "ledger/": "prompts_ledgerentry",
    "ledger/export/?format=json": "prompts_ledgerentry",
    "ledger/outdated/": "prompts_ledgerentry",
    "": "prompts_ledgerentry",
}
# Pages that need more than one query.
QUERY_COUNTS = {"ledger/outdated/": 6, "": 3}
NEVER = ("agents/pilot/", "memories/", "agents/", "keys/", "members/", "time-machine/", "verify/", "find/")


@pytest.fixture
def stage(workspace):
    stage = make_stage(workspace)
    stage.fetch()
    return stage


@pytest.fixture
def replica_configured(stage):
    """Configure the same database as a read-only replica."""
    with use_replica(address_of()):
        yield


@pytest.fixture
def replica_down(stage, tmp_path):
    with use_replica(address_of(str(tmp_path))):
        yield


def get_replica_queries(client: Client, path: str) -> str:
    """Return the queries that the page ran on the replica, without health checks."""
    with CaptureQueriesContext(connections[REPLICA_ALIAS]) as queries:
        answer = client.get(f"/w/harbour/{path}")
        body = b"".join(answer) if answer.streaming else answer.content
    assert answer.status_code == 200, (path, body[:300])
    return "\n".join(one["sql"] for one in queries if "pg_is_in_recovery" not in one["sql"])


# --- which reads ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lists_files_and_figures_are_read_from_the_replica_and_nothing_else(replica_configured, as_alice):
    for path, table in LAGGING.items():
        queries = get_replica_queries(as_alice, path)
        assert f'FROM "{table}"' in queries, path
        # Lazy queries of a template would have no fallback.
        assert queries.count("SELECT") - queries.count("(SELECT") <= QUERY_COUNTS.get(path, 1), queries
    for path in NEVER:
        assert not get_replica_queries(as_alice, path), path


def test_a_fetch_never_touches_the_replica_and_nobody_can_write_there(replica_configured, stage, workspace):
    with CaptureQueriesContext(connections[REPLICA_ALIAS]) as queries:
        stage.fetch()
    assert not queries.captured_queries
    assert LedgerEntry.objects.in_workspace(workspace).count() == 2
    event = AuditEvent.objects.in_workspace(workspace).first()
    with pytest.raises(InternalError, match="read-only"):
        AuditEvent(workspace=workspace, verb="x", kind="x", object_id=1).save(using=REPLICA_ALIAS)
    assert AuditEvent.objects.in_workspace(workspace).first() == event


def test_the_clock_counts_bots_behind_on_the_replica(replica_configured, stage):
    stage.edit("Be calm.")
    with CaptureQueriesContext(connections[REPLICA_ALIAS]) as queries:
        assert measure_metrics()["stale_bots"] == 1
    assert "prompts_ledgerentry" in queries.captured_queries[-1]["sql"]


@pytest.mark.slow
def test_after_a_write_the_user_reads_from_the_primary(replica_configured, workspace, as_alice, as_bob):
    as_alice.post("/w/harbour/memories/new/", {"text": "Likes tea.", "status": "active"})
    assert as_alice.cookies[RECENT_WRITE_COOKIE]["max-age"] == replica.RECENT_WRITE_SECONDS
    assert not get_replica_queries(as_alice, "audit/")
    assert get_replica_queries(as_bob, "audit/")
    assert RECENT_WRITE_COOKIE not in as_bob.cookies
    # Longer than the lag that may go unnoticed.
    assert replica.MAX_LAG.total_seconds() + replica.CHECK_SECONDS < replica.RECENT_WRITE_SECONDS


def test_without_a_replica_nothing_changes(stage, as_alice):
    assert REPLICA_ALIAS not in connections.databases
    assert as_alice.get("/w/harbour/audit/").status_code == 200
    as_alice.post("/w/harbour/memories/new/", {"text": "Likes tea.", "status": "active"})
    assert RECENT_WRITE_COOKIE not in as_alice.cookies


# --- down, or too far behind ---------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_answer_while_the_replica_is_away_and_it_is_tried_once(replica_down, as_alice):
    with capture_logs() as logs:
        for path in LAGGING:
            answer = as_alice.get(f"/w/harbour/{path}")
            assert answer.status_code == 200, path
            assert not answer.streaming or b"".join(answer)
    assert [one["event"] for one in logs if "replica" in one["event"]] == ["replica_suspended"]


def test_a_failure_between_two_health_checks_is_noticed_by_the_query(replica_configured, as_alice):
    assert get_replica_queries(as_alice, "audit/")
    connections.databases[REPLICA_ALIAS]["HOST"] = "/nowhere"
    connections[REPLICA_ALIAS].close()
    connections[REPLICA_ALIAS].settings_dict["HOST"] = "/nowhere"
    answer = as_alice.get("/w/harbour/audit/")
    assert answer.status_code == 200
    assert answer.context["page"].rows
    assert REPLICA_HEALTH.is_suspended


@pytest.mark.slow
def test_it_is_used_again_after_a_while_unless_it_is_too_far_behind(
    replica_configured, as_alice, monkeypatch
):
    REPLICA_HEALTH.suspend("a test")
    assert not get_replica_queries(as_alice, "audit/")
    REPLICA_HEALTH.next_check = 0.0
    assert get_replica_queries(as_alice, "audit/")
    monkeypatch.setattr(replica, "get_replica_lag", lambda: timedelta(minutes=5))
    REPLICA_HEALTH.next_check = 0.0
    assert not get_replica_queries(as_alice, "audit/")
    assert REPLICA_HEALTH.is_suspended


@pytest.mark.planted
def test_a_page_without_the_fallback_would_fail(replica_down, as_alice, monkeypatch):
    """Planted: the query always uses the replica."""
    monkeypatch.setattr(
        "personas.audit.views.read_from_replica",
        lambda query, *, fresh: query(REPLICA_ALIAS),
        raising=True,
    )
    as_alice.raise_request_exception = False
    assert as_alice.get("/w/harbour/audit/").status_code >= 500


# --- settings and the doctor ---------------------------------------------------------------------------


def test_the_doctor_says_nothing_without_a_replica(db):
    assert list(check_replica()) == []


def test_the_doctor_warns_of_a_replica_that_is_away_or_the_database_itself(transactional_db, tmp_path):
    for url, message in ((address_of(str(tmp_path)), "does not respond"), (address_of(), "not a replica")):
        with use_replica(url):
            [finding] = check_replica()
        assert (finding.state, finding.name) == (FindingState.WARN, "replica")
        assert message in finding.message


@pytest.mark.slow
def test_a_replica_of_sqlite_is_refused():
    postgres = {"DATABASE_URL": "postgresql://a@b/c", "DATABASE_REPLICA_URL": "sqlite:////tmp/x"}
    sqlite = {"DATABASE_URL": "sqlite:////tmp/x", "DATABASE_REPLICA_URL": "postgresql://a@b/c"}
    for variables in (postgres, sqlite):
        done = run_settings(COMPLETE | variables)
        assert "DATABASE_REPLICA_URL requires PostgreSQL" in done.stderr


# --- a real one ----------------------------------------------------------------------------------------


@pytest.mark.hard
def test_a_real_standby_serves_lists_falls_behind_goes_away_and_comes_back(request):
    """With its own servers: a standby cannot start while a transaction has more than 64 savepoints."""
    if ALONE not in os.environ:
        run_alone(request.node.nodeid)
        return
    run_with_standby(*map(request.getfixturevalue, ("workspace", "as_alice", "bob", "monkeypatch", "stage")))


def run_alone(test: str) -> None:
    excluded = ("PYTEST", "DATABASE_URL", "REDIS_URL", "DRAMATIS_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(excluded)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:randomly", test]
    done = subprocess.run(
        command, env=environment | {ALONE: "yes"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3_000:]
    assert "1 passed" in done.stdout


def run_with_standby(workspace, as_alice, bob, monkeypatch, stage):
    bob_client = signed_in(bob)
    with connection.cursor() as cursor:
        # The servers of tests write their log a moment after the commit; the standby follows what is written.
        cursor.execute("SET synchronous_commit = on")
    with standby() as copy, use_replica(address_of(str(copy.directory))):
        catch_up(copy)
        assert all(get_replica_queries(as_alice, path) for path in LAGGING)
        [finding] = check_replica()
        assert (finding.state, finding.message) == (FindingState.OK, "Its lag is 0 s.")

        pause_replay(copy)
        memory = make_memory(workspace, "Written while the copy slept.")
        assert not events_of(bob_client, memory), "the replica lags behind"
        bob_client.cookies[RECENT_WRITE_COOKIE] = "1"
        assert events_of(bob_client, memory), "a user reads their own write"
        del bob_client.cookies[RECENT_WRITE_COOKIE]
        assert replica.get_replica_lag() > timedelta(0)
        monkeypatch.setattr(replica, "MAX_LAG", timedelta(0))
        REPLICA_HEALTH.next_check = 0.0
        assert events_of(bob_client, memory), "a replica too far behind is not used"
        monkeypatch.undo()

        query_cluster(copy, "SELECT pg_wal_replay_resume()")
        catch_up(copy)
        REPLICA_HEALTH.next_check = 0.0
        assert "personas_auditevent" in get_replica_queries(bob_client, "audit/")
        assert events_of(bob_client, memory)
        # Not exactly zero: PostgreSQL writes to its log also when nobody does.
        assert replica.get_replica_lag() < timedelta(seconds=5)

        copy.stop("immediate")
        assert events_of(bob_client, memory)
        assert REPLICA_HEALTH.is_suspended
        [finding] = check_replica()
        assert finding.state == FindingState.WARN
        copy.start()
        REPLICA_HEALTH.next_check = 0.0
        assert get_replica_queries(bob_client, "audit/")


def events_of(client: Client, memory) -> list[AuditEvent]:
    events = client.get("/w/harbour/audit/").context["page"].rows
    return [event for event in events if (event.kind, event.object_id) == ("memory", memory.pk)]
