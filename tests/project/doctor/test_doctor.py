"""`manage.py doctor`: each finding has a state and, if it is not ok, advice."""

import json
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace

import pytest
import time_machine
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from project.celery import app
from project.doctor import checks, datastores, record
from project.doctor.checks import check_settings
from project.doctor.record import check_lag, check_ledger_times, check_record
from project.doctor.results import FindingState
from project.doctor.run import has_passed, run_checks
from project.journal.services import STATUS_KEY
from project.tasks import HEARTBEAT_KEY, record_endings_job, record_heartbeat_job
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.models import BuildCause, Checkpoint
from tests.prompts.serving.serving_stage import insert_rows, make_stage

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


@pytest.fixture
def beating():
    record_heartbeat_job()
    yield
    cache.delete_many([HEARTBEAT_KEY, STATUS_KEY])


def named(findings, name):
    return [finding for finding in findings if finding.name == name]


def states(findings, name):
    return [finding.state for finding in named(findings, name)]


@pytest.fixture
def served(monkeypatch):
    """Let a worker answer for all queues; tests/skills/refresh/test_workers.py asks a real one."""
    queues = [{"name": queue.name} for queue in app.conf.task_queues]
    inspect = SimpleNamespace(active_queues=lambda: {"worker@host": queues})
    monkeypatch.setattr(app.control, "inspect", lambda timeout: inspect)


# --- the command ---------------------------------------------------------------------------------------


def test_a_healthy_installation_exits_with_0(beating, served, monkeypatch, settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    record_endings_job()
    # The test server runs without fsync, which would be a failure.
    monkeypatch.setattr(datastores, "DURABILITY_SETTINGS", ())
    out = StringIO()
    try:
        call_command("doctor", stdout=out, no_color=True)
    except SystemExit:
        pytest.fail(out.getvalue())
    lines = out.getvalue().splitlines()
    assert all(line.split()[0] in {"ok", "warn"} for line in lines), out.getvalue()
    names = {line[6:].partition(":")[0] for line in lines}
    assert {"database", "migrations", "redis", "worker", "build queue", "record", "var disk"} <= names


@pytest.mark.slow
def test_a_failure_exits_with_1_and_has_advice(monkeypatch):
    cache.delete(HEARTBEAT_KEY)
    monkeypatch.setattr(datastores, "DURABILITY_SETTINGS", ())
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json", stdout=out)
    assert ended.value.code == 1
    report = json.loads(out.getvalue())
    assert report["is_well"] is False
    [worker] = [one for one in report["findings"] if one["name"] == "worker"]
    assert worker["state"] == "fail"
    assert "celery -A project worker" in worker["advice"]


@pytest.mark.slow
def test_every_warning_and_failure_has_advice(settings):
    settings.REDIS_URL = "unix:///nowhere/at.all"
    for finding in run_checks():
        assert finding.state == FindingState.OK or finding.advice.endswith("."), finding


@pytest.mark.slow
def test_a_part_that_does_not_answer_hides_no_other(settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    findings = run_checks()
    assert states(findings, "redis") == [FindingState.FAIL]
    assert str(tmp_path) not in str(named(findings, "redis"))
    assert states(findings, "database") == [FindingState.OK]
    assert not has_passed(findings)


# --- each check ----------------------------------------------------------------------------------------


def test_insecure_settings_are_reported(settings):
    settings.PRODUCTION, settings.DEBUG, settings.ALLOWED_HOSTS = True, True, ["*"]
    settings.DRAMATIS_REQUIRE_OWNER_MFA = False
    messages = " ".join(finding.message for finding in check_settings())
    for text in ("source code", "any host name", "second factor", "not https"):
        assert text in messages


def test_a_signing_key_that_cannot_be_used_fails(settings, tmp_path):
    settings.DRAMATIS_SIGNING_KEY = str(tmp_path / "missing.pem")
    assert states(list(check_settings()), "signing key") == [FindingState.FAIL]


def test_unapplied_migrations_fail(monkeypatch):
    monkeypatch.setattr(
        "django.db.migrations.executor.MigrationExecutor.migration_plan", lambda *_: ["one", "two"]
    )
    assert datastores.check_migrations().message == "2 are not applied."


@pytest.mark.skipif("sqlite" in connection.vendor, reason="SQLite runs on this machine's clock")
def test_clock_skew_is_reported(monkeypatch):
    assert datastores.check_clock_skew().state == FindingState.OK
    ahead = SimpleNamespace(now=lambda: timezone.now() + timedelta(seconds=5))
    monkeypatch.setattr(datastores, "timezone", ahead)
    assert datastores.check_clock_skew().state == FindingState.WARN
    ahead.now = lambda: timezone.now() + timedelta(minutes=5)
    assert datastores.check_clock_skew().state == FindingState.FAIL


@pytest.mark.skipif("sqlite" in connection.vendor, reason="pinned by the settings' own test")
def test_a_database_without_durability_fails():
    """The test server runs without fsync."""
    assert datastores.check_durability().state == FindingState.FAIL


@pytest.mark.parametrize(
    ("info", "state"),
    [
        ({"aof_enabled": 1, "aof_last_write_status": "ok"}, FindingState.OK),
        ({"aof_enabled": 0}, FindingState.WARN),
        ({"aof_enabled": 1, "aof_last_write_status": "err"}, FindingState.FAIL),
    ],
)
def test_redis_persistence_is_checked(info, state):
    assert datastores.check_redis_persistence(info).state == state


def test_a_redis_that_throws_jobs_away_fails():
    assert datastores.check_redis_eviction({"maxmemory_policy": "allkeys-lru"}).state == FindingState.FAIL
    assert datastores.check_redis_eviction({"maxmemory_policy": "noeviction"}).state == FindingState.OK
    assert datastores.check_redis_version({"redis_version": "5.0.14"}).state == FindingState.WARN
    assert (
        datastores.check_redis_version({"valkey_version": "9.1.0", "redis_version": "7.2.4"}).state
        == FindingState.OK
    )


def test_a_long_build_queue_is_reported(workspace, agent):
    cause = BuildCause.objects.in_workspace(workspace).create(
        workspace=workspace, agent=agent, cause={"kind": "soul"}
    )
    for minutes, state in ((0, FindingState.OK), (5, FindingState.WARN), (60, FindingState.FAIL)):
        at = timezone.now() - timedelta(minutes=minutes)
        BuildCause.objects.in_workspace(workspace).filter(pk=cause.pk).update(at=at)
        assert states(list(checks.check_workers()), "build queue") == [state]


@pytest.mark.parametrize(
    ("replies", "missing"),
    [
        (None, "clock, builds, scans, webhooks, long"),
        ({"one": [{"name": "builds"}, {"name": "scans"}], "two": [{"name": "clock"}]}, "webhooks, long"),
    ],
)
def test_a_queue_without_a_worker_is_named(monkeypatch, replies, missing):
    inspect = SimpleNamespace(active_queues=lambda: replies)
    monkeypatch.setattr(app.control, "inspect", lambda timeout: inspect)
    [finding] = checks.check_queue_workers()
    assert (finding.state, finding.message) == (
        FindingState.FAIL,
        f"No worker consumes: {missing}.",
    )


def test_a_late_heartbeat_warns():
    late = timezone.now() - timedelta(minutes=3)
    cache.set(HEARTBEAT_KEY, late.isoformat())
    assert checks.check_heartbeat().state == FindingState.WARN
    cache.delete(HEARTBEAT_KEY)


def test_low_disk_space_is_reported(monkeypatch, tmp_path):
    for free, state in ((50, FindingState.OK), (8, FindingState.WARN), (1, FindingState.FAIL)):
        usage = SimpleNamespace(free=free, total=100)
        monkeypatch.setattr("shutil.disk_usage", lambda place, usage=usage: usage)
        assert checks.check_disk_space("disk", tmp_path).state == state


def test_the_ends_of_sound_chains_are_sound(workspace, settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    make_stage(workspace)
    sign_checkpoint(workspace.pk)
    for full in (False, True):
        assert {finding.state for finding in check_record(full=full)} == {FindingState.OK}


@pytest.mark.planted
def test_a_chain_that_ends_elsewhere_is_found(workspace):
    stage = make_stage(workspace)
    prompt = stage.prompt
    prompt.last_hash = "0" * 64
    prompt.save(update_fields=["last_hash"])
    assert states(list(check_record()), "record")[0] == FindingState.FAIL


@pytest.mark.planted
def test_a_forged_checkpoint_is_found(workspace, settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    make_stage(workspace)
    checkpoint = sign_checkpoint(workspace.pk)
    assert checkpoint is not None
    forged = Checkpoint(
        workspace=workspace,
        sequence=checkpoint.sequence + 1,
        body=checkpoint.body | {"previous": checkpoint.hash},
        heads=checkpoint.heads,
        at=timezone.now(),
        previous_hash=checkpoint.hash,
        hash=checkpoint.hash,
        key_id=checkpoint.key_id,
        signature=checkpoint.signature,
    )
    forged.save(force_insert=True)
    assert states(list(check_record()), "record")[0] == FindingState.FAIL


# --- sealing and signing -------------------------------------------------------------------------------


@pytest.mark.promise("R18")
def test_workspaces_that_are_unsealed_or_unsigned_for_too_long_are_named(workspace, settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    stage, now = make_stage(workspace), timezone.now()
    stage.fetch()
    for ahead, sealing, signing in (
        (timedelta(0), FindingState.OK, FindingState.OK),
        (timedelta(minutes=4), FindingState.FAIL, FindingState.OK),
        (timedelta(hours=3), FindingState.FAIL, FindingState.FAIL),
    ):
        with time_machine.travel(now + ahead, tick=False):
            findings = list(check_lag())
        assert (states(findings, "sealing"), states(findings, "signing")) == ([sealing], [signing])
        assert all(workspace.slug in one.message for one in findings if one.state == FindingState.FAIL)
    with time_machine.travel(now + timedelta(hours=3), tick=False):
        sign_checkpoint(workspace.pk)
        assert {finding.state for finding in check_lag()} == {FindingState.OK}


@pytest.mark.promise("R18")
def test_rows_from_a_wrong_clock_are_reported(workspace):
    stage = make_stage(workspace)
    assert states(list(check_ledger_times()), "ledger times") == [FindingState.OK]
    insert_rows(stage, [timezone.now() + timedelta(days=365)])
    for minutes in (2, 4):
        with time_machine.travel(timezone.now() + timedelta(minutes=minutes), tick=False):
            seal_ledger(workspace.pk)
    [finding] = check_ledger_times()
    assert finding.state == FindingState.WARN
    assert workspace.slug in finding.message


@pytest.mark.planted
@pytest.mark.promise("R18")
def test_a_doctor_that_asks_for_the_newest_block_of_any_workspace_is_found(workspace, monkeypatch):
    """As it was once: one workspace that is sealed hid all others."""
    monkeypatch.setattr(record, "list_workspace_lags", list)
    with pytest.raises(AssertionError):
        test_workspaces_that_are_unsealed_or_unsigned_for_too_long_are_named(
            workspace, SimpleNamespace(), "nowhere"
        )
