"""Retention: expired rows are deleted in batches, and no others."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.utils import timezone

from core.db import batch_delete
from personas.api.idempotency import delete_expired_responses
from personas.drafts.services import store_draft
from personas.models import FormDraft, IdempotentResponse
from project import tasks
from project.retention import purge_drafts, purge_refresh_runs, purge_sessions
from skills.models import RefreshRun, RunStatus
from skills.refresh import runs as refresh_runs
from tests.factories import make_source, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(batch_delete, "BATCH_SIZE", 2)


@pytest.fixture
def source(workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    return make_source(workspace, tmp_path)


def add_runs(source, count, *, days, status=RunStatus.DONE):
    with time_machine.travel(timezone.now() - timedelta(days=days), tick=False):
        for _ in range(count):
            ended = None if status in (RunStatus.QUEUED, RunStatus.RUNNING) else timezone.now()
            RefreshRun(
                workspace=source.workspace,
                source=source,
                status=status,
                cause="schedule",
                actor_label="the schedule",
                finished_at=ended,
            ).save(force_insert=True)


def runs(source):
    return RefreshRun.objects.in_workspace(source.workspace).filter(source=source)


def test_old_refresh_runs_are_deleted_and_recent_ones_kept(source, monkeypatch):
    monkeypatch.setattr(refresh_runs, "MIN_RUNS_KEPT", 3)
    runs(source).delete()
    add_runs(source, 7, days=40)
    add_runs(source, 4, days=5)
    assert purge_refresh_runs() == 7
    assert runs(source).count() == 4
    assert purge_refresh_runs() == 0


def test_a_source_keeps_its_newest_runs_however_old(source, monkeypatch):
    monkeypatch.setattr(refresh_runs, "MIN_RUNS_KEPT", 3)
    runs(source).delete()
    add_runs(source, 7, days=400)
    newest = list(runs(source).order_by("-pk").values_list("pk", flat=True)[:3])
    assert purge_refresh_runs() == 4
    assert list(runs(source).order_by("-pk").values_list("pk", flat=True)) == newest


def test_an_unfinished_run_is_kept(source, monkeypatch):
    monkeypatch.setattr(refresh_runs, "MIN_RUNS_KEPT", 1)
    runs(source).delete()
    add_runs(source, 1, days=90, status=RunStatus.QUEUED)
    add_runs(source, 3, days=80)
    assert purge_refresh_runs() == 2
    assert runs(source).filter(status=RunStatus.QUEUED).count() == 1


@pytest.mark.planted
def test_forgetting_without_minding_the_newest_is_noticed(source, monkeypatch):
    def careless(rows):
        return batch_delete.delete_in_batches(RefreshRun.unscoped.filter(finished_at__lt=timezone.now()))

    monkeypatch.setattr(refresh_runs, "delete_in_batches", careless)
    with pytest.raises(AssertionError):
        test_a_source_keeps_its_newest_runs_however_old(source, monkeypatch)


def test_zero_days_keep_rows_for_ever(source, settings, workspace, by_alice):
    settings.DRAMATIS_KEEP_RUNS_DAYS = settings.DRAMATIS_KEEP_DRAFTS_DAYS = 0
    add_runs(source, 40, days=4_000)
    with time_machine.travel(timezone.now() - timedelta(days=4_000)):
        store_draft(workspace, "souls", None, {"name": ["Calm"]}, by=by_alice)
    assert purge_refresh_runs() == purge_drafts() == 0


def test_an_abandoned_draft_is_deleted(workspace, by_alice):
    with time_machine.travel(timezone.now() - timedelta(days=91)):
        for key in ("one", "two", "three"):
            store_draft(workspace, "souls", None, {"name": [key]}, key=key, by=by_alice)
    store_draft(workspace, "souls", None, {"name": ["two again"]}, key="two", by=by_alice)
    assert purge_drafts() == 2
    assert FormDraft.objects.in_workspace(workspace).get().key == "two"


def test_stored_responses_go_in_batches(workspace):
    for number in range(5):
        IdempotentResponse(
            workspace=workspace,
            route="keys",
            name=f"k{number}",
            body_digest="",
            at=timezone.now() - timedelta(hours=30 if number else 1),
        ).save(force_insert=True)
    assert delete_expired_responses() == 4
    assert IdempotentResponse.objects.in_workspace(workspace).get().name == "k0"


def test_expired_sessions_are_deleted(alice, workspace):
    with time_machine.travel(timezone.now() - timedelta(days=2)):
        signed_in(alice)
    now = signed_in(alice)
    assert purge_sessions() >= 1
    assert [row.session_key for row in Session.objects.all()] == [now.session.session_key]


def test_one_run_does_not_go_on_without_end(source, monkeypatch):
    monkeypatch.setattr(refresh_runs, "MIN_RUNS_KEPT", 1)
    monkeypatch.setattr(batch_delete, "MAX_BATCHES", 2)
    runs(source).delete()
    add_runs(source, 9, days=40)
    assert purge_refresh_runs() == 4


def test_every_retention_job_is_scheduled(settings):
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    for job in (
        tasks.purge_idempotency_keys_job,
        tasks.purge_refresh_runs_job,
        tasks.purge_drafts_job,
        tasks.purge_sessions_job,
        tasks.measure_metrics_job,
    ):
        assert job.name in scheduled
        job()
