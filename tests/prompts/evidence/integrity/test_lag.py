"""Signing selects workspaces with changes, the longest unsigned first; lag is reported per workspace."""

import os
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from django.conf import settings as present_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import Workspace
from prompts import tasks
from prompts.evidence.integrity.checkpoint_files import get_checkpoint_path
from prompts.evidence.integrity.checkpoint_signer import NoSigningKey, sign_checkpoint
from prompts.evidence.integrity.lag import (
    MAX_UNSEALED_TIME,
    MAX_UNSIGNED_TIME,
    SIGN_INTERVAL,
    WorkspaceLag,
    list_workspace_lags,
    list_workspaces_to_sign,
)
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.models import Checkpoint
from prompts.tasks import WorkspaceJobFailed, sign_checkpoints_job
from tests.factories import make_user, make_workspace
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = [pytest.mark.django_db, pytest.mark.promise("R18")]
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def checkpoint_folder(settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"


@pytest.fixture
def stages(workspace, elsewhere) -> list[Stage]:
    return [make_stage(workspace), make_stage(elsewhere)]


def sign_at(at: datetime, *stages: Stage) -> None:
    with time_machine.travel(at, tick=False):
        for stage in stages:
            assert sign_checkpoint(stage.workspace.pk) is not None


def lags_at(at: datetime) -> dict[str, WorkspaceLag]:
    with time_machine.travel(at, tick=False):
        return {lag.slug: lag for lag in list_workspace_lags()}


def to_sign_at(at: datetime) -> list[int]:
    with time_machine.travel(at, tick=False):
        return list_workspaces_to_sign()


def count_checkpoints(stage: Stage) -> int:
    return Checkpoint.objects.in_workspace(stage.workspace).count()


# --- selection -----------------------------------------------------------------------------------------


def test_only_workspaces_with_changes_are_signed(stages):
    now = timezone.now()
    assert to_sign_at(now) == [stage.workspace.pk for stage in stages]
    sign_at(now, *stages)
    assert to_sign_at(now + 10 * HOUR) == []
    stages[1].edit("Be bold.")
    assert to_sign_at(now + SIGN_INTERVAL / 2) == [], "each at most once an hour"
    assert to_sign_at(now + SIGN_INTERVAL) == [stages[1].workspace.pk]


def test_an_unsealed_row_is_a_change_once_it_is_settled(stages):
    now = timezone.now()
    sign_at(now, *stages)
    with time_machine.travel(now + 2 * HOUR, tick=False):
        stages[0].fetch()
        assert list_workspaces_to_sign() == []
    assert to_sign_at(now + 2 * HOUR + timedelta(minutes=2)) == [stages[0].workspace.pk]


def test_a_checkpoint_from_the_future_delays_no_other(stages):
    now = timezone.now()
    sign_at(now + timedelta(days=365), stages[0])
    stages[0].edit("Be bold.")
    assert stages[0].workspace.pk in to_sign_at(now)


def test_the_workspace_signed_longest_ago_comes_first(stages):
    now = timezone.now()
    sign_at(now, stages[1])
    sign_at(now + timedelta(minutes=5), stages[0])
    for stage in stages:
        stage.edit("Be bold.")
    assert to_sign_at(now + 2 * HOUR) == [stages[1].workspace.pk, stages[0].workspace.pk]
    never = make_stage(make_workspace("Third", owner=make_user("Carol")))
    assert to_sign_at(now + 2 * HOUR)[0] == never.workspace.pk


def test_a_run_that_is_out_of_time_begins_with_the_others_next_time(stages, monkeypatch):
    now = timezone.now()
    for number, expected in enumerate(([1, 0], [1, 1])):
        ticks = iter([0.0, 0.0, tasks.WORKSPACE_JOB_SECONDS + 1])
        with monkeypatch.context() as patch, time_machine.travel(now, tick=False):
            patch.setattr("prompts.tasks.time", SimpleNamespace(monotonic=lambda ticks=ticks: next(ticks)))
            sign_checkpoints_job()
        assert [count_checkpoints(stage) for stage in stages] == expected, number


def test_a_copy_whose_file_has_the_time_of_the_tick_before_is_complete(stages):
    now = timezone.now()
    sign_at(now, *stages)
    for stage in stages:
        os.utime(get_checkpoint_path(stage.workspace.pk), times=(now.timestamp() - 0.01,) * 2)
    assert to_sign_at(now + timedelta(minutes=5)) == []


@pytest.mark.parametrize("kept", [0, 40])
def test_a_copy_that_was_interrupted_is_completed_by_the_next_run(stages, kept):
    """The worker was killed after it created the file, or in the middle of a line."""
    now = timezone.now()
    sign_at(now, *stages)
    path = get_checkpoint_path(stages[0].workspace.pk)
    copied = path.read_text()
    path.write_text(copied[:kept])
    assert to_sign_at(now + timedelta(minutes=5)) == [stages[0].workspace.pk]
    with time_machine.travel(now + timedelta(minutes=5), tick=False):
        sign_checkpoints_job()
    assert path.read_text() == copied


def test_a_checkpoint_that_was_not_copied_is_copied_by_the_next_run(stages):
    """A worker can be killed between the commit and the copy."""
    sign_at(timezone.now(), *stages)
    path = get_checkpoint_path(stages[0].workspace.pk)
    copied = path.read_text()
    path.unlink()
    assert list_workspaces_to_sign() == [stages[0].workspace.pk]
    sign_checkpoints_job()
    assert path.read_text() == copied
    assert list_workspaces_to_sign() == []


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_the_workspaces(stages):
    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            list_workspaces_to_sign()
            list_workspace_lags()
        return len(queries)

    few = count_queries()
    owner = make_user("Carol")
    for number in range(5):
        make_stage(make_workspace(f"Third {number}", owner=owner))
    assert count_queries() == few


# --- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [NoSigningKey("No key today."), ValueError("spoiled"), MemoryError()])
def test_the_job_signs_all_workspaces_even_if_one_fails(stages, monkeypatch, error):
    workspace_ids: list[int] = []

    def sign_or_fail(workspace_id: int) -> Any:
        workspace_ids.append(workspace_id)
        if workspace_id == stages[0].workspace.pk:
            raise error
        return sign_checkpoint(workspace_id)

    monkeypatch.setattr(tasks, "sign_checkpoint", sign_or_fail)
    with pytest.raises(WorkspaceJobFailed, match="failed for 1 of 2 workspaces"):
        sign_checkpoints_job()
    assert workspace_ids == [stage.workspace.pk for stage in stages]
    assert [count_checkpoints(stage) for stage in stages] == [0, 1]
    assert "prompts.tasks.sign_checkpoints_job" in {
        entry["task"] for entry in present_settings.CELERY_BEAT_SCHEDULE.values()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value"), [("heads", "{}"), ("heads", "[7]"), ("body", "[]"), ("body", '{"versions": 7}')]
)
def test_a_damaged_checkpoint_stops_neither_its_workspace_nor_the_others(stages, column, value):
    now = timezone.now()
    sign_at(now, *stages)
    for stage in stages:
        stage.edit("Be bold.")
    with unguarded():
        by_hand(
            f"UPDATE prompts_checkpoint SET {column} = %s WHERE workspace_id = %s",  # noqa: S608  # our own names
            value,
            stages[0].workspace.pk,
        )
        with time_machine.travel(now + 2 * HOUR, tick=False):
            sign_checkpoints_job()
        assert [count_checkpoints(stage) for stage in stages] == [2, 2]
        assert not verify_workspace(stages[0].workspace).is_sound
        assert verify_workspace(stages[1].workspace).is_sound


# --- lag -----------------------------------------------------------------------------------------------


def test_the_oldest_unsealed_row_counts(stages):
    now = timezone.now()
    assert {lag.unsealed for lag in lags_at(now).values()} == {timedelta()}
    with time_machine.travel(now, tick=False):
        stages[0].fetch()
    slug = stages[0].workspace.slug
    lag = lags_at(now + MAX_UNSEALED_TIME * 2)[slug]
    assert (lag.unsealed, lag.is_unsealed_too_long) == (MAX_UNSEALED_TIME * 2, True)
    assert not lags_at(now + MAX_UNSEALED_TIME)[slug].is_unsealed_too_long
    with time_machine.travel(now + timedelta(minutes=2), tick=False):
        seal_ledger(stages[0].workspace.pk)
    assert lags_at(now + 2 * HOUR)[slug].unsealed == timedelta()


def test_the_oldest_unsigned_change_counts_however_old_the_checkpoint_is(stages):
    now, slug = timezone.now(), stages[0].workspace.slug
    sign_at(now, *stages)
    assert slug not in lags_at(now + 100 * HOUR)
    for hours in (100, 101):
        with time_machine.travel(now + hours * HOUR, tick=False):
            stages[0].edit(f"Be bold for {hours} hours.")
    lag = lags_at(now + 103 * HOUR)[slug]
    assert (lag.unsigned, lag.is_unsigned_too_long) == (3 * HOUR, True)
    assert not lags_at(now + 100 * HOUR + MAX_UNSIGNED_TIME)[slug].is_unsigned_too_long
    sign_at(now + 103 * HOUR, stages[0])
    assert slug not in lags_at(now + 200 * HOUR)


def test_a_sealed_fetch_that_is_not_signed_counts(stages):
    now, slug = timezone.now(), stages[0].workspace.slug
    sign_at(now, *stages)
    with time_machine.travel(now + 10 * HOUR, tick=False):
        stages[0].fetch()
    with time_machine.travel(now + 10 * HOUR + timedelta(minutes=2), tick=False):
        seal_ledger(stages[0].workspace.pk)
    assert lags_at(now + 13 * HOUR)[slug].unsigned == 3 * HOUR - timedelta(minutes=2)


def test_a_workspace_that_was_never_signed_is_reported(stages):
    lags = lags_at(timezone.now() + 3 * HOUR)
    assert set(lags) == set(Workspace.objects.values_list("slug", flat=True))
    assert all(lag.is_unsigned_too_long for lag in lags.values())


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_selection_in_order_of_ids_is_found(stages, monkeypatch):
    monkeypatch.setattr(
        f"{__name__}.to_sign_at", lambda at: sorted(Workspace.objects.values_list("pk", flat=True))
    )
    with pytest.raises(AssertionError):
        test_the_workspace_signed_longest_ago_comes_first(stages)


@pytest.mark.planted
def test_a_job_that_stops_at_an_unexpected_error_is_found(stages, monkeypatch):
    def run_until_error(workspace_ids, action):
        for workspace_id in workspace_ids:
            action(workspace_id)

    monkeypatch.setattr(tasks, "run_for_each_workspace", run_until_error)
    with pytest.raises(ValueError, match="spoiled"):
        test_the_job_signs_all_workspaces_even_if_one_fails(stages, monkeypatch, ValueError("spoiled"))
