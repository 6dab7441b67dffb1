"""Ledger retention: whole blocks expire and leave a expiry; nothing else can be deleted or changed."""

from datetime import datetime, timedelta

import pytest
import time_machine
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from personas.api_keys.services import create_key
from personas.errors import InvalidInput
from personas.models import AuditEvent, Workspace
from prompts.evidence.ledger import blocks, retention
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.evidence.ledger.partitions import create_partitions, drop_empty_partitions
from prompts.evidence.ledger.retention import (
    expire_blocks,
    expire_oldest_block,
    list_workspaces_to_expire,
    set_ledger_retention,
    subtract_months,
)
from prompts.models import LedgerBlock, LedgerExpiry
from prompts.tasks import expire_ledger_job, maintain_partitions_job
from tests.factories import BY
from tests.prompts.serving.serving_stage import Stage, fetch, ledger_verdict, make_stage, statements_fail_at
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


def set_stage(shared: SharedCast) -> Stage:
    """Make three blocks of four rows: three years old, seven months old, and new."""
    workspace = shared.workspace
    stage, now = make_stage(workspace), timezone.now()
    with pytest.MonkeyPatch.context() as patch:
        speed_up(patch)
        for at in (subtract_months(now, 36), subtract_months(now, 7), now):
            with time_machine.travel(at, tick=False):
                _, secret = create_key(workspace, f"Of {at:%Y-%m}", {}, by=BY)
                for _ in range(4):
                    fetch(secret, cache=stage.cache)
                assert seal_ledger(workspace.pk) == 1
    return stage


def speed_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(blocks, "SETTLE_DELAY", -blocks.SETTLE_DELAY)
    patch.setattr(blocks, "MAX_BLOCK_ROWS", 4)
    patch.setattr(retention, "DELETE_BATCH_SIZE", 3)


@pytest.fixture
def stage(props: Stage, monkeypatch) -> Stage:
    speed_up(monkeypatch)
    return props


def counts(stage: Stage) -> tuple[int, int]:
    """Return the number of rows and of expired blocks."""
    return len(stage.rows), LedgerExpiry.objects.in_workspace(stage.workspace).count()


def ids(stage: Stage) -> list[int]:
    return [row.pk for row in stage.rows]


def execute_sql(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def delete_rows(numbers: list[int]) -> None:
    id_list = ", ".join(map(str, numbers))
    execute_sql(f"DELETE FROM prompts_ledgerentry WHERE id IN ({id_list})")  # noqa: S608  # numbers of our own


# --- expiry --------------------------------------------------------------------------------------------


def test_a_block_expires_after_its_months_and_leaves_a_record(stage):
    assert list_workspaces_to_expire(timezone.now()) == [stage.workspace.pk]
    remaining = ids(stage)[4:]
    assert expire_blocks(stage.workspace.pk) == 1
    assert ids(stage) == remaining
    [expiry] = LedgerExpiry.objects.in_workspace(stage.workspace).select_related("block")
    assert (expiry.block.sequence, expiry.months) == (1, 24)
    assert (expiry.first_id, expiry.last_id) == (expiry.block.first_id, expiry.block.last_id)
    assert ledger_verdict(stage.workspace).first is None
    assert list_workspaces_to_expire(timezone.now()) == []
    assert expire_blocks(stage.workspace.pk) == 0


def test_expired_rows_are_in_the_audit_log(stage):
    expire_blocks(stage.workspace.pk)
    event = AuditEvent.objects.in_workspace(stage.workspace).get(verb="expired")
    assert (event.kind, event.object_label, event.actor_label) == ("ledger", "block 1", "dramatis")
    assert (event.after or {})["rows"] == 4


def test_with_fewer_months_more_expires_but_never_rows_younger_than_six_months(stage, by_alice):
    set_ledger_retention(stage.workspace, 6, by=by_alice)
    expire_ledger_job()
    assert counts(stage) == (4, 2)
    assert ledger_verdict(stage.workspace).first is None
    with time_machine.travel(timezone.now() + timedelta(days=170)):
        assert expire_blocks(stage.workspace.pk) == 0


def test_six_months_is_the_minimum_in_service_and_database(workspace, by_alice):
    for months in (5, 0, -1, 5_000):
        with pytest.raises(InvalidInput) as caught:
            set_ledger_retention(workspace, months, by=by_alice)
        assert "ledger_months" in caught.value.errors
    with pytest.raises(IntegrityError), transaction.atomic():
        Workspace.objects.filter(pk=workspace.pk).update(ledger_months=5)
    assert set_ledger_retention(workspace, 6, by=by_alice).ledger_months == 6
    event = AuditEvent.objects.in_workspace(workspace).get(verb="changed retention")
    assert (event.before, event.after) == ({"ledger_months": 24}, {"ledger_months": 6})


def test_another_workspaces_rows_stay(stage, elsewhere, monkeypatch):
    theirs = make_stage(elsewhere)
    with time_machine.travel(subtract_months(timezone.now(), 36)):
        _, secret = create_key(elsewhere, "Old", {}, by=BY)
        fetch(secret)
        seal_ledger(elsewhere.pk)
    Workspace.objects.filter(pk=elsewhere.pk).update(ledger_months=60)
    expire_ledger_job()
    assert counts(theirs) == (1, 0)
    assert counts(stage) == (8, 1)


def test_a_failure_of_any_statement_keeps_the_complete_block(stage):
    for word in ("INSERT INTO", "DELETE FROM"):
        with pytest.raises(DatabaseError), transaction.atomic(), statements_fail_at(word) as tried:
            expire_oldest_block(stage.workspace.pk, timezone.now())
        assert tried
        assert counts(stage) == (12, 0)
        assert ledger_verdict(stage.workspace).first is None


def test_a_block_that_does_not_match_its_rows_is_kept(stage, monkeypatch):
    monkeypatch.setattr(LedgerBlock, "from_db", classmethod(miscounted))
    assert expire_blocks(stage.workspace.pk) == 0
    assert counts(stage) == (12, 0)


def miscounted(cls, /, db, field_names, values, **more):
    row = super(LedgerBlock, cls).from_db(db, field_names, values, **more)
    row.count += 1
    return row


@pytest.mark.parametrize(
    ("now", "months", "then"),
    [
        ("2026-08-31", 6, "2026-02-28"),
        ("2024-08-31", 6, "2024-02-29"),
        ("2026-03-15", 24, "2024-03-15"),
        ("2026-01-01", 1, "2025-12-01"),
        ("2026-12-31", 12, "2025-12-31"),
    ],
)
def test_months_are_calendar_months(now, months, then):
    noon = "T12:00:00+00:00"
    assert subtract_months(datetime.fromisoformat(now + noon), months) == datetime.fromisoformat(then + noon)


def test_the_partition_job_runs_on_every_database(stage):
    maintain_partitions_job()
    assert len(stage.rows) == 12
    if connection.vendor == "sqlite":
        assert create_partitions() == drop_empty_partitions() == []


# --- append-only triggers ------------------------------------------------------------------------------


def test_no_row_is_changed_by_sql(stage):
    for change in ("size = 1", "slots = '{}'", "at = '2020-01-01 00:00:00+00:00'", "workspace_id = 0"):
        with pytest.raises(DatabaseError, match="only grows"):
            execute_sql(f"UPDATE prompts_ledgerentry SET {change}")  # noqa: S608  # fixed columns
    expire_blocks(stage.workspace.pk)
    with pytest.raises(DatabaseError, match="only grows"):
        execute_sql("UPDATE prompts_ledgerentry SET size = 1")


def test_no_row_is_deleted_by_sql_before_its_block_expired(stage):
    for numbers in (ids(stage)[:1], ids(stage)[:4], ids(stage)[-1:], ids(stage)):
        with pytest.raises(DatabaseError, match="only grows"):
            delete_rows(numbers)
    assert len(stage.rows) == 12


def forged_expiry(stage: Stage, block: LedgerBlock) -> None:
    """Write a expiry before the block has expired."""
    LedgerExpiry(
        workspace=stage.workspace,
        block=block,
        first_id=block.first_id,
        last_id=block.last_id,
        months=0,
        at=timezone.now(),
    ).save()


def test_even_with_a_expiry_no_row_younger_than_six_months_is_deleted(stage):
    *_, middle, young = LedgerBlock.objects.in_workspace(stage.workspace).order_by("sequence")
    forged_expiry(stage, young)
    with pytest.raises(DatabaseError, match="only grows"):
        delete_rows(ids(stage)[-1:])
    forged_expiry(stage, middle)
    delete_rows([middle.first_id])


def test_a_expiry_covers_its_own_block_and_workspace_only(stage, elsewhere):
    theirs = make_stage(elsewhere)
    with time_machine.travel(subtract_months(timezone.now(), 36)):
        _, secret = create_key(elsewhere, "Old", {}, by=BY)
        fetch(secret)
        seal_ledger(elsewhere.pk)
    second = LedgerBlock.objects.in_workspace(stage.workspace).get(sequence=2)
    forged_expiry(stage, second)
    for numbers in (ids(stage)[:1], ids(stage)[3:5], ids(theirs)):
        with pytest.raises(DatabaseError, match="only grows"):
            delete_rows(numbers)
    delete_rows([second.first_id, second.last_id])


def test_blocks_and_expiries_cannot_be_changed_or_deleted(stage):
    expire_blocks(stage.workspace.pk)
    for table in ("prompts_ledgerblock", "prompts_ledgerexpiry"):
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET first_id = 0"):  # noqa: S608  # fixed names
            with pytest.raises(DatabaseError, match="only grows"):
                execute_sql(statement)


def test_rows_missing_without_a_expiry_are_detected(stage):
    assert ledger_verdict(stage.workspace).first is None
    rows = ids(stage)[4:8]
    with disabled_trigger():
        delete_rows(rows[:1])
    assert "closed with 4 rows, but has 3" in ledger_verdict(stage.workspace).first.reason


# --- planted faults ------------------------------------------------------------------------------------


class disabled_trigger:  # noqa: N801  # reads as a sentence where it is used
    """Context manager that disables the append-only trigger."""

    def __enter__(self) -> None:
        self.turn("DISABLE")

    def __exit__(self, *_: object) -> None:
        self.turn("ENABLE")

    def turn(self, way: str) -> None:
        if connection.vendor == "postgresql":
            execute_sql(f"ALTER TABLE prompts_ledgerentry {way} TRIGGER prompts_ledgerentry_only_grows")
        elif way == "DISABLE":
            with connection.cursor() as cursor:
                cursor.execute("SELECT name, sql FROM sqlite_master WHERE tbl_name = 'prompts_ledgerentry'")
                self.triggers = [row for row in cursor.fetchall() if row[1].startswith("CREATE TRIGGER")]
            for name, _ in self.triggers:
                execute_sql(f"DROP TRIGGER {name}")
        else:
            for _, sql in self.triggers:
                execute_sql(sql)


@pytest.mark.planted
def test_a_ledger_without_its_trigger_is_found(stage):
    with disabled_trigger():
        for guard in (
            test_no_row_is_changed_by_sql,
            test_no_row_is_deleted_by_sql_before_its_block_expired,
            test_even_with_a_expiry_no_row_younger_than_six_months_is_deleted,
        ):
            with pytest.raises(pytest.fail.Exception), transaction.atomic():
                guard(stage)


@pytest.mark.planted
def test_rows_deleted_without_a_expiry_are_found(stage, monkeypatch):
    monkeypatch.setattr(LedgerExpiry, "save", lambda self, **_: None)
    with pytest.raises(DatabaseError, match="only grows"):
        expire_blocks(stage.workspace.pk)
