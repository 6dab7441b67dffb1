"""Refreshes with a real worker and broker that are killed, stopped and flushed."""

import os
import signal
import time
from pathlib import Path

import pytest
from django.db.models import F

from project.doctor.checks import check_queue_workers
from project.doctor.results import FindingState
from skills.models import RefreshRun, Source
from skills.refresh.runs import START_TIMEOUT, request_refresh
from skills.tasks import refresh_source_job
from tests.factories import BY, make_source
from tests.skills.job_stage import (
    JobStage,
    count_revisions,
    get_active_text,
    is_at_rest,
    is_done_once,
    job_stage,
    list_run_statuses,
    request_run,
    sweep,
)
from tests.workers import wait_for

pytestmark = [pytest.mark.redis, pytest.mark.django_db(transaction=True), pytest.mark.slow]

# Long enough to refresh three files, short enough to wait until it expires.
SHORT_LEASE = 3.0
R13_SECONDS = 60


@pytest.fixture(scope="module")
def stage(django_db_setup, tmp_path_factory):
    """One broker and one worker for all tests that do not stop them."""
    with job_stage(tmp_path_factory.mktemp("jobs"), tmp_path_factory.getbasetemp()) as stage:
        stage.worker(lease=SHORT_LEASE)
        yield stage


@pytest.fixture(autouse=True)
def open_gate(request):
    """Release a run that the previous test has blocked."""
    if "stage" in request.fixturenames:
        stage: JobStage = request.getfixturevalue("stage")
        stage.gate().unlink(missing_ok=True)
        stage.gate().with_suffix(".reached").unlink(missing_ok=True)


@pytest.fixture
def own_stage(tmp_path):
    """A broker and workers that only one test uses and may stop."""
    with job_stage(tmp_path, tmp_path) as stage:
        yield stage


@pytest.fixture
def source(workspace, tmp_path, settings) -> Source:
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Be kind.\n")
    return make_source(workspace, folder, refresh_minutes=None)


def rewrite(source: Source, text: str) -> None:
    (Path(str(source.allowed_folder)) / "AGENTS.md").write_text(text)


def test_a_refresh_goes_through_broker_and_worker(stage, source):
    request_run(source)
    assert wait_for(lambda: is_done_once(source)), stage.log()
    assert get_active_text(source) == "Be kind.\n"


def test_the_doctor_sees_a_worker_for_each_queue(stage):
    [finding] = check_queue_workers()
    assert (finding.state, finding.message) == (FindingState.OK, "Each of the 5 queues has a worker.")


def test_a_run_that_is_delivered_again_does_nothing(stage, source):
    run = request_run(source)
    for _ in range(3):
        refresh_source_job.delay(run.workspace_id, run.pk)
    assert wait_for(lambda: is_done_once(source)), stage.log()
    before = RefreshRun.unscoped.values().get()
    request_run(source)
    assert wait_for(lambda: list_run_statuses(source) == ["done", "done"])
    assert RefreshRun.unscoped.values().get(pk=run.pk) == before
    assert count_revisions(source) == 1


def test_a_request_during_a_run_follows_at_once(stage, source):
    stage.gate().touch()
    request_run(source)
    assert stage.wait_at(), stage.log()
    rewrite(source, "Be very kind.\n")
    first, second = request_run(source), request_run(source)
    assert first == second
    stage.gate().unlink()
    assert wait_for(lambda: list_run_statuses(source) == ["done", "done"]), stage.log()
    assert get_active_text(source) == "Be very kind.\n"


def test_a_killed_pool_process_costs_its_run_and_nothing_else(stage, source):
    """With a short lease; the long tests use the real one."""
    stage.gate().touch()
    request_run(source)
    assert stage.wait_at(), stage.log()
    kill_pool(stage)
    stage.gate().unlink()
    assert list_run_statuses(source) == ["running"]
    assert swept_until(lambda: is_done_once(source), 20), stage.log()
    assert list_run_statuses(source) == ["lost", "done"]
    assert (get_active_text(source), count_revisions(source)) == ("Be kind.\n", 1)


@pytest.mark.planted
@pytest.mark.promise("R13")
def test_a_message_lost_with_the_broker_is_found_by_the_sweep_and_by_nothing_else(stage, source, tmp_path):
    """The first half is the planted fault: without the sweep the run waits forever."""
    (tmp_path / "other").mkdir()
    other = make_source(source.workspace, tmp_path / "other", "Other files", refresh_minutes=None)
    stage.gate().touch()
    request_run(other)
    assert stage.wait_at(), stage.log()
    run = request_run(source)
    stage.flush()
    stage.gate().unlink()
    assert wait_for(lambda: is_done_once(other)), stage.log()
    assert not wait_for(lambda: is_at_rest(source), 2)
    # As if the start timeout had passed.
    RefreshRun.unscoped.filter(pk=run.pk).update(sent_at=F("sent_at") - START_TIMEOUT)
    assert swept_until(lambda: is_done_once(source), 10), stage.log()


def test_a_frozen_broker_holds_no_page_and_its_work_is_done_later(stage, source, as_alice):
    address = f"/w/{source.workspace.slug}/sources/{source.slug}/"
    as_alice.get(address)
    stage.freeze()
    try:
        began = time.monotonic()
        answer = as_alice.post(f"{address}refresh/", follow=True)
        seconds = time.monotonic() - began
        # Before the broker runs again: a worker may begin at once then.
        statuses = list_run_statuses(source)
    finally:
        stage.thaw()
    # The broker is waited for at most a second; without that limit, until it runs again.
    assert seconds < 5
    assert answer.status_code == 200
    assert "Started refreshing" in answer.content.decode()
    assert "Waiting to start" in answer.content.decode()
    assert statuses == ["queued"]
    assert swept_until(lambda: is_done_once(source), 30), stage.log()


def kill_pool(stage: JobStage) -> None:
    for process in stage.processes:
        for pid in process.pool():
            os.kill(pid, signal.SIGKILL)


def swept_until(question, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not question() and time.monotonic() < deadline:
        sweep()
        time.sleep(0.5)
    return bool(question())


# --- long tests: real lease, real schedule ---------------------------------------------------------------


def within_a_minute(source: Source, began: float) -> bool:
    return bool(wait_for(lambda: is_done_once(source), R13_SECONDS - (time.monotonic() - began)))


def record_seconds(record_property, what: str, began: float) -> None:
    record_property("measured", f"{what}: done after {time.monotonic() - began:.0f} s")


@pytest.mark.promise("R13")
@pytest.mark.hard
@pytest.mark.parametrize("harm", ["KILL the pool process", "KILL the whole worker", "TERM"])
def test_a_refresh_survives_its_worker(own_stage, source, harm, record_property):
    worker = own_stage.worker()
    own_stage.beat()
    own_stage.gate().touch()
    request_run(source)
    assert own_stage.wait_at(), own_stage.log()
    began = time.monotonic()
    if harm == "KILL the pool process":
        kill_pool(own_stage)
    elif harm == "KILL the whole worker":
        worker.kill()
    else:
        worker.process.terminate()
    rewrite(source, "Be very kind.\n")
    own_stage.gate().unlink()
    if harm != "KILL the pool process":
        worker.process.wait(20)
        own_stage.worker()
    assert within_a_minute(source, began), own_stage.log()
    record_seconds(record_property, harm, began)
    assert list_run_statuses(source) == (["done"] if harm == "TERM" else ["lost", "done"])
    text = "Be kind.\n" if harm == "TERM" else "Be very kind.\n"
    assert (get_active_text(source), count_revisions(source)) == (text, 1)


@pytest.mark.promise("R13")
@pytest.mark.hard
def test_a_refresh_survives_a_flushed_broker(own_stage, source, record_property):
    own_stage.worker()
    own_stage.gate().touch()
    request_run(source)
    assert own_stage.wait_at(), own_stage.log()
    rewrite(source, "Be very kind.\n")
    request_run(source)
    began = time.monotonic()
    own_stage.flush()
    own_stage.beat()
    own_stage.gate().unlink()
    assert wait_for(
        lambda: list_run_statuses(source) == ["done", "done"], R13_SECONDS - (time.monotonic() - began)
    )
    record_seconds(record_property, "broker flushed", began)
    assert get_active_text(source) == "Be very kind.\n"


@pytest.mark.promise("R13")
@pytest.mark.hard
def test_a_message_that_was_flushed_before_anyone_read_it_is_sent_again(own_stage, source, record_property):
    run = request_run(source)
    own_stage.flush()
    assert RefreshRun.unscoped.get(pk=run.pk).sent_at
    began = time.monotonic()
    own_stage.worker()
    own_stage.beat()
    assert within_a_minute(source, began), own_stage.log()
    record_seconds(record_property, "message flushed", began)
    assert list_run_statuses(source) == ["done"]


@pytest.mark.hard
def test_a_worker_that_comes_back_too_late_stores_nothing(own_stage, source):
    """It has read the old text, counted as dead, and resumes after another worker has stored the new text."""
    own_stage.worker(gate="old", lease=SHORT_LEASE)
    own_stage.gate("old").touch()
    request_run(source)
    assert own_stage.wait_at("old"), own_stage.log()
    rewrite(source, "Be very kind.\n")
    own_stage.worker(gate="new")
    time.sleep(SHORT_LEASE)
    assert swept_until(lambda: is_done_once(source), 20), own_stage.log()
    own_stage.gate("old").unlink()
    time.sleep(1)
    request_run(source)
    assert wait_for(lambda: list_run_statuses(source) == ["lost", "done", "done"]), own_stage.log()
    assert (get_active_text(source), count_revisions(source)) == ("Be very kind.\n", 1)


@pytest.mark.promise("R13")
@pytest.mark.hard
def test_worker_and_schedule_outlive_a_frozen_broker(own_stage, source):
    worker, beat = own_stage.worker(), own_stage.beat()
    own_stage.freeze()
    request_run(source)
    time.sleep(15)
    own_stage.thaw()
    began = time.monotonic()
    assert within_a_minute(source, began), own_stage.log()
    assert (worker.process.poll(), beat.process.poll()) == (None, None)


@pytest.mark.hard
def test_worker_and_schedule_survive_a_restart_of_the_broker(own_stage, source):
    from project.supervisor.valkey import start_valkey

    worker, beat = own_stage.worker(), own_stage.beat()
    socket = Path(own_stage.broker.url.removeprefix("unix://"))
    own_stage.broker.process.kill()
    own_stage.broker.process.wait()
    request_run(source)
    time.sleep(5)
    own_stage.broker.process = start_valkey(socket, own_stage.broker.directory)
    began = time.monotonic()
    assert within_a_minute(source, began), own_stage.log()
    assert (worker.process.poll(), beat.process.poll()) == (None, None)


@pytest.mark.hard
def test_a_refresh_that_takes_too_long_is_stopped_with_an_error(own_stage, source):
    own_stage.worker()
    own_stage.gate().touch()
    run = request_refresh(source, cause="person", by=BY)
    refresh_source_job.apply_async((run.workspace_id, run.pk), soft_time_limit=2)
    assert own_stage.wait_at(), own_stage.log()
    assert wait_for(lambda: is_at_rest(source)), own_stage.log()
    run.refresh_from_db()
    assert (run.status, run.error) == ("failed", "The run timed out.")
    own_stage.gate().unlink()
    request_run(source)
    assert wait_for(lambda: is_done_once(source)), own_stage.log()
