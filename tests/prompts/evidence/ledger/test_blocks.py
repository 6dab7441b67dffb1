"""Sealing the ledger: every row in one block, in order, chained; late rows are detected."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError, connection
from django.utils import timezone

from personas.api_keys.services import create_key
from prompts import tasks
from prompts.evidence.integrity.lag import list_workspace_lags
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger import blocks as ledger_blocks
from prompts.evidence.ledger.blocks import list_workspaces_to_seal, seal_block, seal_ledger
from prompts.models import LedgerBlock, LedgerEntry
from prompts.proof.chains import verify_chain
from prompts.proof_rows import build_block_row
from prompts.tasks import WorkspaceJobFailed, seal_ledger_job
from tests.factories import BY
from tests.prompts.serving.serving_stage import (
    Stage,
    insert_row,
    insert_rows,
    ledger_verdict,
    long_ago,
    make_stage,
)
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def blocks_of(workspace) -> list[LedgerBlock]:
    return list(LedgerBlock.objects.in_workspace(workspace).order_by("sequence"))


def chain_verdict(workspace):
    return verify_chain(
        [(build_block_row(block), block.hash, block.previous_hash) for block in blocks_of(workspace)]
    )


@pytest.fixture
def settled(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A ledger without settle delay, so that tests need not wait a minute."""
    monkeypatch.setattr(ledger_blocks, "SETTLE_DELAY", -ledger_blocks.SETTLE_DELAY)
    return stage


def test_settled_rows_are_sealed_and_verify(settled):
    for _ in range(5):
        settled.fetch()
    assert list_workspaces_to_seal() == [settled.workspace.pk]
    assert seal_ledger(settled.workspace.pk) == 1
    [block] = blocks_of(settled.workspace)
    rows = settled.rows
    assert (block.sequence, block.first_id, block.last_id, block.count) == (1, rows[0].pk, rows[-1].pk, 5)
    assert (block.first_at, block.last_at) == (rows[0].at, rows[-1].at)
    assert ledger_verdict(settled.workspace).first is None
    assert chain_verdict(settled.workspace).first is None
    assert list_workspaces_to_seal() == []
    assert seal_ledger(settled.workspace.pk) == 0


def test_young_rows_stay_open_and_no_row_after_them_is_sealed(stage):
    """A block contains all rows between its ends: an older row after a younger one has to wait."""
    stage.fetch()
    insert_rows(stage, [long_ago(minutes=5)] * 2)
    assert seal_block(stage.workspace.pk) is None
    assert list_workspaces_to_seal() == [stage.workspace.pk]
    assert ledger_verdict(stage.workspace).first is None


def test_blocks_are_bounded_and_follow_each_other(settled, monkeypatch):
    monkeypatch.setattr(ledger_blocks, "MAX_BLOCK_ROWS", 4)
    for _ in range(10):
        settled.fetch()
    assert seal_ledger(settled.workspace.pk) == 3
    blocks = blocks_of(settled.workspace)
    assert [(block.sequence, block.count) for block in blocks] == [(1, 4), (2, 4), (3, 2)]
    assert [block.previous_hash for block in blocks] == ["", blocks[0].hash, blocks[1].hash]
    assert ledger_verdict(settled.workspace).first is None
    assert chain_verdict(settled.workspace).first is None


@pytest.mark.slow
def test_each_workspace_has_its_own_blocks_although_ids_are_shared(settled, elsewhere):
    theirs = make_stage(elsewhere)
    for _ in range(3):
        settled.fetch()
        theirs.fetch()
    seal_ledger_job()
    for workspace in (settled.workspace, elsewhere):
        [block] = blocks_of(workspace)
        assert (block.sequence, block.count) == (1, 3)
        assert ledger_verdict(workspace).first is None


@pytest.mark.promise("R18")
@pytest.mark.parametrize("error", [DatabaseError, ValueError, RuntimeError])
def test_an_error_in_one_workspace_does_not_stop_the_others(settled, elsewhere, monkeypatch, error):
    theirs = make_stage(elsewhere)
    settled.fetch()
    theirs.fetch()
    real, first = ledger_blocks.seal_block, min(settled.workspace.pk, elsewhere.pk)

    def troubled(workspace_id):
        if workspace_id == first:
            raise error("broken")
        return real(workspace_id)

    monkeypatch.setattr(ledger_blocks, "seal_block", troubled)
    with pytest.raises(WorkspaceJobFailed, match="seal_ledger failed for 1 of 2 workspaces"):
        seal_ledger_job()
    assert LedgerBlock.unscoped.exclude(workspace=first).count() == 1


def test_the_last_use_of_a_key_comes_from_the_rows(settled):
    other, _ = create_key(settled.workspace, "Idle", {}, by=BY)
    settled.fetch()
    last = settled.fetch().at
    settled.key.refresh_from_db()
    assert settled.key.last_used_at is None
    seal_ledger(settled.workspace.pk)
    settled.key.refresh_from_db()
    other.refresh_from_db()
    assert (settled.key.last_used_at, other.last_used_at) == (last, None)


def test_the_workspace_sealed_longest_ago_comes_first(settled, elsewhere):
    theirs = make_stage(elsewhere)
    for stage in (theirs, settled):
        stage.fetch()
        seal_ledger(stage.workspace.pk)
    settled.fetch()
    theirs.fetch()
    assert list_workspaces_to_seal() == [elsewhere.pk, settled.workspace.pk]


# --- clocks that are wrong -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("R18")
def test_rows_from_the_future_are_sealed_when_they_are_a_minute_old(stage):
    """Their time does not tell their age, so they are sealed a minute after they were first observed."""
    now = timezone.now()
    with time_machine.travel(now, tick=False):
        insert_rows(stage, [now - timedelta(minutes=10), now + timedelta(days=365), now])
        for _ in range(2):
            seal_ledger(stage.workspace.pk)
    assert count_sealed(stage) == 0, "the first row is young, and those after it wait"
    for minutes, sealed in ((1.1, 2), (1.6, 2), (2.2, 4)):
        with time_machine.travel(now + timedelta(minutes=minutes), tick=False):
            seal_ledger(stage.workspace.pk)
            assert count_sealed(stage) == sealed
    with time_machine.travel(now + timedelta(minutes=5), tick=False):
        stage.fetch()
    with time_machine.travel(now + timedelta(minutes=7), tick=False):
        seal_ledger(stage.workspace.pk)
        assert count_sealed(stage) == 5
        assert stage_lag(stage) == timedelta()
    assert ledger_verdict(stage.workspace).first is None
    reasons = [str(fault) for fault in verify_workspace(stage.workspace).faults]
    assert any("later than the time at which it was closed" in reason for reason in reasons), reasons


def count_sealed(stage: Stage) -> int:
    return sum(block.count for block in blocks_of(stage.workspace))


def stage_lag(stage: Stage) -> timedelta:
    return max((lag.unsealed for lag in list_workspace_lags()), default=timedelta())


@pytest.mark.promise("R18")
def test_rows_from_the_past_are_sealed_and_reported(stage):
    insert_rows(stage, [long_ago(minutes=10)])
    with time_machine.travel(timezone.now() + timedelta(minutes=2)):
        seal_ledger(stage.workspace.pk)
    insert_rows(stage, [long_ago(days=400)])
    seal_ledger(stage.workspace.pk)
    assert count_sealed(stage) == 3
    reasons = [str(fault) for fault in verify_workspace(stage.workspace).faults]
    assert any("earlier than those of a block before it" in reason for reason in reasons), reasons


@pytest.mark.promise("R18")
def test_a_clock_that_was_set_back_stops_no_sealing(stage):
    """All rows of the last hours are then from the future."""
    now = timezone.now()
    with time_machine.travel(now + timedelta(days=30), tick=False):
        insert_rows(stage, [now + timedelta(days=30)] * 2)
        seal_ledger(stage.workspace.pk)
    for minutes in (0, 1.1):
        with time_machine.travel(now + timedelta(minutes=minutes), tick=False):
            seal_ledger(stage.workspace.pk)
    assert count_sealed(stage) == 3


@pytest.mark.planted
@pytest.mark.promise("R18")
def test_rows_from_the_future_that_are_never_sealed_are_found(stage, monkeypatch):
    monkeypatch.setattr(ledger_blocks, "observe_newest_row", lambda *_: 0)
    with pytest.raises(AssertionError):
        test_rows_from_the_future_are_sealed_when_they_are_a_minute_old(stage)


@pytest.mark.planted
@pytest.mark.promise("R18")
def test_a_loop_that_stops_at_the_first_error_is_found(settled, elsewhere, monkeypatch):
    def stop_at_first(workspace_ids, action):
        for workspace_id in workspace_ids:
            try:
                action(workspace_id)
            except DatabaseError:
                continue
            except ValueError as error:
                raise WorkspaceJobFailed("seal_ledger failed for 1 of 2 workspaces") from error

    monkeypatch.setattr(tasks, "run_for_each_workspace", stop_at_first)
    with pytest.raises(AssertionError):
        test_an_error_in_one_workspace_does_not_stop_the_others(settled, elsewhere, monkeypatch, ValueError)


# --- late rows -----------------------------------------------------------------------------------------


def leave_gap(stage: Stage) -> int:
    """Skip an id, as a row of another workspace or a failed statement does; return it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT nextval(pg_get_serial_sequence('prompts_ledgerentry', 'id'))")
            return int(cursor.fetchone()[0])
    last = stage.rows[-1].pk
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'prompts_ledgerentry'")
    return last + 1


def test_a_late_row_inside_a_block_is_detected(settled):
    settled.fetch()
    gap = leave_gap(settled)
    settled.fetch()
    seal_ledger(settled.workspace.pk)
    assert ledger_verdict(settled.workspace).first is None
    insert_row(settled, timezone.now(), gap)
    fault = ledger_verdict(settled.workspace).first
    assert (fault.table, fault.reason) == ("ledger-block", "it was closed with 2 rows, but has 3")


def test_a_late_row_between_two_blocks_is_detected(settled):
    settled.fetch()
    seal_ledger(settled.workspace.pk)
    gap = leave_gap(settled)
    settled.fetch()
    seal_ledger(settled.workspace.pk)
    assert ledger_verdict(settled.workspace).first is None
    insert_row(settled, timezone.now(), gap)
    fault = ledger_verdict(settled.workspace).first
    assert fault.key == f"ledger row {gap}"
    assert "is in no block" in fault.reason
    assert list_workspaces_to_seal() == []


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.planted
def test_sealing_that_skips_young_rows_is_found(stage, monkeypatch):
    """Sealed by time instead of by id, the younger row in between would be in no block."""

    def by_time(workspace_id, last_id, until):
        rows = (
            LedgerEntry.objects.in_workspace(workspace_id).filter(pk__gt=last_id, at__lt=until).order_by("pk")
        )
        return list(rows.values_list("pk", "seal", "at", "key_id"))

    monkeypatch.setattr(ledger_blocks, "list_rows_to_seal", by_time)
    with pytest.raises(AssertionError):
        test_young_rows_stay_open_and_no_row_after_them_is_sealed(stage)
    assert "is in no block" in ledger_verdict(stage.workspace).first.reason


@pytest.mark.planted
def test_a_block_not_chained_to_the_previous_one_is_found(settled, monkeypatch):
    real = ledger_blocks.build_ledger_block

    def unchained(workspace_id, rows, previous, now):
        block = real(workspace_id, rows, None, now)
        block.sequence = previous.sequence + 1 if previous else 1
        block.hash = build_block_row(block).hash("")
        return block

    monkeypatch.setattr(ledger_blocks, "build_ledger_block", unchained)
    with pytest.raises(AssertionError):
        test_blocks_are_bounded_and_follow_each_other(settled, monkeypatch)
    assert chain_verdict(settled.workspace).first is not None
