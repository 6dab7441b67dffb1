"""Sealing the ledger: every row in one block, in order, chained; late rows are detected."""

from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone

from personas.api_keys.services import create_key
from prompts.hashed_rows import build_block_row
from prompts.ledger import blocks as ledger_blocks
from prompts.ledger.blocks import list_workspaces_to_seal, seal_block, seal_ledger
from prompts.models import LedgerBlock, LedgerEntry
from prompts.proof.chains import verify_chain
from prompts.tasks import seal_ledger_job
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


def test_an_error_in_one_workspace_does_not_stop_the_others(settled, elsewhere, monkeypatch):
    theirs = make_stage(elsewhere)
    settled.fetch()
    theirs.fetch()
    real, first = ledger_blocks.seal_block, min(settled.workspace.pk, elsewhere.pk)

    def troubled(workspace_id):
        if workspace_id == first:
            raise DatabaseError("broken")
        return real(workspace_id)

    monkeypatch.setattr(ledger_blocks, "seal_block", troubled)
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
    assert (fault.table, fault.reason) == ("ledger-block", "it was closed over 2 rows, and 3 are there")


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
    assert "stands in no block" in fault.reason
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
    assert "stands in no block" in ledger_verdict(stage.workspace).first.reason


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
