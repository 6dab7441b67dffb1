"""The queue of refresh runs: request, claim, loss and retry, with concurrency and disabled checks."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from core.circuit_breaker import MAX_FAILURES, OPEN_SECONDS, CircuitBreaker
from personas.records.services import archive_record, edit_record
from skills import tasks
from skills.models import ContextFile, RefreshRun, RunStatus
from skills.refresh import runs
from skills.refresh import services as refresh_services
from skills.refresh.runs import (
    LEASE_DURATION,
    MAX_LOST_RUNS,
    START_TIMEOUT,
    LostRun,
    SourceArchived,
    claim_run,
    list_runs_to_send,
    list_unsent_workspaces,
    request_due_refreshes,
    request_refresh,
    requeue_lost_runs,
    requeue_run,
    save_run_progress,
)
from skills.refresh.services import SourceEdited, refresh_source
from skills.rule_sets.effective import get_effective_harnesses
from skills.sources.locks import lock_source
from tests.database_locks import patient_connection
from tests.factories import BY, make_source, refreshed
from tests.skills.job_stage import get_active_text, list_run_statuses

MANY = 8


@pytest.fixture
def source(workspace, tmp_path: Path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    return make_source(workspace, tmp_path, refresh_minutes=None)


def ask(source) -> RefreshRun:
    return request_refresh(source, cause="person", by=BY)


def claimed(source) -> RefreshRun:
    run = claim_run(source.workspace_id, ask(source).pk)
    assert run is not None
    return run


def lapse(run: RefreshRun) -> None:
    RefreshRun.unscoped.filter(pk=run.pk).update(leased_until=timezone.now() - timedelta(seconds=1))


def at_once(work, thread_count: int = MANY) -> list:
    """Return the results of many threads that start together, each with its own connection."""
    gate = threading.Barrier(thread_count)

    def run_thread(number: int):
        gate.wait(60)
        with patient_connection():
            return work(number)

    with ThreadPoolExecutor(thread_count) as pool:
        return list(pool.map(run_thread, range(thread_count)))


# --- concurrency ---------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_many_who_ask_at_once_all_get_the_same_run(source):
    answers = at_once(lambda _: ask(source).pk)
    assert len(set(answers)) == 1
    assert list_run_statuses(source) == ["queued"]


@pytest.mark.django_db(transaction=True)
def test_of_many_who_claim_at_once_one_succeeds(source):
    run = ask(source)
    claims = at_once(lambda _: claim_run(source.workspace_id, run.pk))
    assert len([one for one in claims if one]) == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_claims_and_sweeps_never_overlap(source):
    """Each thread mixes all operations; afterwards every run has exactly one end."""

    def bustle(number: int) -> None:
        for _ in range(5):
            run = ask(source)
            mine = claim_run(source.workspace_id, run.pk)
            if mine and number % 2:
                lapse(mine)
            requeue_lost_runs(timezone.now())
            if mine:
                tasks.execute_refresh_run(mine)

    at_once(bustle, 4)
    # Whether an earlier run got done depends on which threads claimed one.
    ask(source)
    while waiting := RefreshRun.unscoped.filter(status="queued").first():
        tasks.execute_refresh_run(claim_run(waiting.workspace_id, waiting.pk))  # type: ignore[arg-type]  # no other worker
    assert {"done"} <= set(list_run_statuses(source)) <= {"done", "lost"}
    assert get_active_text(source) == "Be kind.\n"
    assert ContextFile.unscoped.get().revisions.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_request_while_a_run_starts_gets_a_later_run(source):
    """If the queued run is claimed between query and insert, another run must be created."""
    first = claimed(source)
    answers = at_once(lambda _: ask(source))
    assert first not in answers
    assert list_run_statuses(source) == ["running", "queued"]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="one writer: whoever asks waits until it is stored")
@pytest.mark.django_db(transaction=True)
def test_a_refresh_can_be_requested_while_another_is_being_stored(source):
    requested = threading.Event()

    def ask_elsewhere(_: int) -> str:
        run = ask(source)
        requested.set()
        return run.status

    with transaction.atomic():
        lock_source(source)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(at_once, ask_elsewhere, 1)
            assert requested.wait(20)
    assert answer.result() == ["queued"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_run_does_not_start_before_its_request_is_committed(source):
    """A push and its request are one transaction; a faster worker must wait for it."""
    run = ask(source)
    begun = threading.Event()

    def claim_elsewhere(_: int) -> RefreshRun | None:
        mine = claim_run(source.workspace_id, run.pk)
        begun.set()
        return mine

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert ask(source) == run
            answer = pool.submit(at_once, claim_elsewhere, 1)
            assert not begun.wait(0.5)
        assert answer.result()[0] == run


# --- one run at a time, and lost runs ---------------------------------------------------------------------


@pytest.mark.django_db
def test_a_source_has_one_running_refresh_at_a_time(source):
    assert not overlaps(source)


def overlaps(source) -> list[str]:
    """List the problems when a second run is claimed while the first is running."""
    claimed(source)
    second = claim_run(source.workspace_id, ask(source).pk)
    return ["two runs of one source are under way"] if second else []


@pytest.mark.planted
@pytest.mark.django_db(transaction=True)
def test_without_the_claims_two_guards_runs_overlap(source, monkeypatch):
    """One check is enough: runs overlap only if both are disabled, and then the test detects it."""
    monkeypatch.setattr(runs, "exclude_busy_sources", lambda rows: rows)
    assert not overlaps(source)
    RefreshRun.unscoped.all().delete()
    rule = next(one for one in RefreshRun._meta.constraints if one.name == "one_refresh_at_a_time")
    with connection.schema_editor() as editor:
        editor.remove_constraint(RefreshRun, rule)
    try:
        assert overlaps(source)
    finally:
        RefreshRun.unscoped.all().delete()
        with connection.schema_editor() as editor:
            editor.add_constraint(RefreshRun, rule)


@pytest.mark.django_db
def test_a_lost_run_is_replaced_and_its_worker_can_no_longer_store(source, tmp_path):
    assert late_words(source, tmp_path) == "Be very kind.\n"
    assert list_run_statuses(source) == ["lost", "done"]


def late_words(source, folder: Path) -> str:
    """Return the effective text after a worker that counted as dead resumes with the old text."""
    late = claimed(source)
    rules = get_effective_harnesses(source.workspace)
    old = refresh_services.discover_source(late.source, [rules[name] for name in source.harnesses], noticed)
    lapse(late)
    requeue_lost_runs(timezone.now())
    (folder / "AGENTS.md").write_text("Be very kind.\n")
    refreshed(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refresh_services, "discover_source", lambda *_: old)
        tasks.execute_refresh_run(late)
    return get_active_text(source)


def noticed(*_: int) -> None:
    return None


@pytest.mark.planted
@pytest.mark.django_db
def test_without_the_final_check_of_the_run_old_text_would_return(source, tmp_path, monkeypatch):
    monkeypatch.setattr(refresh_services, "lock_running_run", lambda run: RefreshRun.unscoped.get(pk=run.pk))
    assert late_words(source, tmp_path) == "Be kind.\n"


@pytest.mark.django_db
def test_a_run_that_tells_of_its_progress_is_not_lost(source):
    run = claimed(source)
    lapse(run)
    save_run_progress(run, 1, 1, 0)
    assert requeue_lost_runs(timezone.now()) == []
    assert RefreshRun.unscoped.filter(leased_until__gt=timezone.now() + LEASE_DURATION / 2).exists()


@pytest.mark.django_db
def test_a_lost_run_stops_as_soon_as_it_tells_of_its_progress(source):
    run = claimed(source)
    lapse(run)
    requeue_lost_runs(timezone.now())
    with pytest.raises(LostRun):
        save_run_progress(run, 1, 1, 0)


@pytest.mark.django_db
def test_a_source_that_ends_every_worker_is_left_alone_after_a_while(source):
    for _ in range(MAX_LOST_RUNS):
        run = RefreshRun.unscoped.filter(status="queued").first() or ask(source)
        mine = claim_run(source.workspace_id, run.pk)
        assert mine
        lapse(mine)
        requeue_lost_runs(timezone.now())
    assert list_run_statuses(source) == ["lost"] * MAX_LOST_RUNS
    assert "not retried automatically" in RefreshRun.unscoped.latest("pk").error
    # A member can still request a refresh.
    assert refreshed(source).status == RunStatus.DONE


@pytest.mark.django_db
def test_the_retry_of_a_lost_run_keeps_the_refusals_of_the_push(source):
    run = claimed(source)
    refusal = {"path": "x", "rule": "size", "reason": "Too large."}
    RefreshRun.unscoped.filter(pk=run.pk).update(refusals=[refusal])
    again = requeue_run(run, "The worker stopped before the run was finished.")
    assert again
    assert again.refusals == [refusal]
    assert refresh_source(claimed(source)).refusals == [refusal]


# --- changes during a run ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_result_from_before_an_edit_is_discarded_and_requested_again(source, tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "AGENTS.md").write_text("Below.\n")
    run = claimed(source)
    discover = refresh_services.discover_source

    def look_and_edit(*args):
        result = discover(*args)
        edit_record(source, {"folder": "sub"}, expected=source.revision, by=BY)
        monkeypatch.setattr(refresh_services, "discover_source", discover)
        return result

    monkeypatch.setattr(refresh_services, "discover_source", look_and_edit)
    with pytest.raises(SourceEdited):
        refresh_source(run)
    tasks.execute_refresh_run(run)
    assert not ContextFile.unscoped.exists()
    assert list_run_statuses(source) == ["lost", "queued"]
    tasks.execute_refresh_run(claimed(source))
    assert get_active_text(source) == "Below.\n"


@pytest.mark.django_db
def test_an_archived_source_is_neither_requested_nor_read(source):
    run = claimed(source)
    run.source = archive_record(source, by=BY)
    with pytest.raises(SourceArchived):
        ask(run.source)
    done = refresh_source(run)
    assert (done.status, done.read, done.error) == ("failed", 0, refresh_services.ARCHIVED_REFUSAL.reason)
    lapse(run)
    assert requeue_lost_runs(timezone.now()) == []


@pytest.mark.django_db(transaction=True)
def test_a_run_for_which_the_database_had_no_time_is_tried_again(source, monkeypatch):
    def busy(*_):
        raise OperationalError("canceling statement due to lock timeout")

    run = claimed(source)
    with monkeypatch.context() as broken:
        broken.setattr(refresh_services, "store_discovered_files", lambda *_, **__: busy())
        with pytest.raises(OperationalError):
            tasks.execute_refresh_run(run)
    assert list_run_statuses(source) == ["lost", "queued"]
    tasks.execute_refresh_run(claimed(source))
    assert list_run_statuses(source) == ["lost", "done"]


@pytest.mark.django_db
def test_a_failed_run_shows_its_error_and_is_not_retried(source, monkeypatch):
    monkeypatch.setattr(refresh_services, "store_discovered_files", lambda *_, **__: vars(source)["nothing"])
    with pytest.raises(KeyError):
        tasks.execute_refresh_run(claimed(source))
    run = RefreshRun.unscoped.get()
    assert (run.status, run.error) == ("failed", "Something went wrong: KeyError.")


# --- the sweep ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_sweep_sends_what_was_never_sent_or_too_long_ago(source):
    run, now = ask(source), timezone.now()
    assert list_runs_to_send(run.workspace_id, now) == [run]
    assert list_unsent_workspaces(now) == [run.workspace_id]
    runs.mark_run_sent(run)
    assert (list_runs_to_send(run.workspace_id, now), list_unsent_workspaces(now)) == ([], [])
    assert list_runs_to_send(run.workspace_id, now + 2 * START_TIMEOUT) == [run]


@pytest.mark.django_db
def test_a_workspace_has_a_few_runs_in_the_queue_and_people_come_first(workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS, settings.DRAMATIS_WORKSPACE_JOBS = [tmp_path], 2
    sources = []
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        sources.append(make_source(workspace, tmp_path / str(number), f"S{number}", refresh_minutes=None))
    scheduled = [request_refresh(source, cause="schedule", by=BY) for source in sources[:3]]
    person = ask(sources[3])
    now = timezone.now()
    assert list_runs_to_send(workspace.pk, now) == [person, scheduled[0]]
    runs.mark_run_sent(person)
    assert claim_run(workspace.pk, scheduled[0].pk)
    assert list_runs_to_send(workspace.pk, now) == []
    runs.fail_run(scheduled[0], "ended")
    assert list_runs_to_send(workspace.pk, now) == [scheduled[1]]


@pytest.mark.django_db
def test_the_end_of_a_run_sends_the_next_of_the_workspace(source, monkeypatch):
    sent: list[tuple[int, int]] = []
    requested: list[RefreshRun] = []

    def send(job: object, *arguments: int) -> bool:
        sent.append(arguments)  # type: ignore[arg-type]  # workspace and run
        return True

    def end_and_ask_again(run: RefreshRun) -> None:
        runs.fail_run(run, "x")
        requested.append(ask(source))

    monkeypatch.setattr(tasks, "enqueue_job", send)
    monkeypatch.setattr(tasks, "execute_refresh_run", end_and_ask_again)
    tasks.refresh_source_job(source.workspace_id, ask(source).pk)
    assert sent == [(source.workspace_id, requested[0].pk)]


@pytest.mark.django_db
def test_the_sweep_sends_nothing_that_could_not_begin(source):
    claimed(source)
    ask(source)
    assert list_unsent_workspaces(timezone.now()) == []
    assert list_runs_to_send(source.workspace_id, timezone.now()) == []


@pytest.mark.django_db
def test_the_schedule_requests_each_source_when_it_is_due(source, workspace, tmp_path):
    now = timezone.now()
    due = make_source(workspace, tmp_path, "Scheduled", refresh_minutes=15)
    assert [run.source for run in request_due_refreshes(now)] == [due]
    assert request_due_refreshes(now) == []
    refresh_source(claimed(due))
    assert request_due_refreshes(now + timedelta(minutes=10)) == []
    assert [run.source for run in request_due_refreshes(now + timedelta(minutes=16))] == [due]


def test_a_lost_run_is_replaced_within_a_minute_by_the_settings_alone(settings):
    """Lease, sweep and longest scan add up; a message lost by the broker has the start timeout instead."""
    sweep = settings.CELERY_BEAT_SCHEDULE["sweep-sources"]["schedule"]
    assert LEASE_DURATION.total_seconds() + sweep < 45
    assert START_TIMEOUT.total_seconds() + sweep < 45
    assert LEASE_DURATION.total_seconds() > 20
    assert settings.CELERY_BEAT_SCHEDULE["sweep-sources"]["options"]["expires"] < sweep


# --- circuit breaker ---------------------------------------------------------------------------------------


def test_the_breaker_opens_after_a_few_failures_and_tries_again_after_a_pause():
    now = [100.0]
    breaker = CircuitBreaker(lambda: now[0])
    for _ in range(MAX_FAILURES):
        assert not breaker.is_open
        breaker.record_failure()
    statuses = [breaker.is_open]
    now[0] += OPEN_SECONDS
    statuses.append(breaker.is_open)
    breaker.record_failure()
    statuses.append(breaker.is_open)
    breaker.record_success()
    breaker.record_failure()
    statuses.append(breaker.is_open)
    assert statuses == [True, False, True, False]
