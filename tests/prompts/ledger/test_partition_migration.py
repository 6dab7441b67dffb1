"""The ledger laid out by month and back, beside those who read and write it: on rows that are committed."""

import threading
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import Index
from django.utils import timezone

from core.db.online_migrations import AddIndexOnline
from core.db.row_level_security import EnableRowLevelSecurity
from project.database.rls_audit import find_unprotected_tables
from prompts.ledger import partitions
from prompts.ledger.partition_migration import BOUND_CONSTRAINT, LedgerSchemaEditor, PartitionByMonth
from prompts.ledger.partitions import (
    DEFAULT_PARTITION,
    LEDGER_TABLE,
    LEGACY_PARTITION,
    add_months,
    create_partitions,
    get_month_start,
    is_ledger_partitioned,
    list_partitions,
    list_unprotected_partitions,
)
from prompts.ledger.retention import subtract_months
from prompts.models import LedgerEntry
from tests.database_cleanup import empty
from tests.prompts.ledger.test_partitions import (
    NOON,
    answer,
    by_hand,
    name_of,
    names,
    places,
    refused,
    rewritable,
)
from tests.prompts.serving.serving_stage import (
    Stage,
    insert_rows,
    ledger_verdict,
    make_stage,
    statements_fail_at,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite keeps its one table"),
]


@pytest.fixture
def stage(workspace) -> Stage:
    create_partitions()
    return make_stage(workspace)


def other_connection() -> dict[str, Any]:
    own = {"cursor_factory", "context", "prepare_threshold"}
    return {name: value for name, value in connection.get_connection_params().items() if name not in own}


def copying(at: datetime, table: str) -> str:
    """A statement that writes a row like the first, of another time."""
    columns = [str(field.column) for field in LedgerEntry._meta.concrete_fields if field.name != "id"]
    taken = ", ".join(f"'{at.isoformat()}'" if name == "at" else name for name in columns)
    return f"INSERT INTO {LEDGER_TABLE} ({', '.join(columns)}) SELECT {taken} FROM {table} LIMIT 1"  # noqa: S608  # ours


def test_nobody_who_reads_or_writes_other_months_waits_while_one_is_made(stage):
    stage.fetch()
    with psycopg.connect(**other_connection()) as other, transaction.atomic():
        assert partitions.create_month_partition(get_month_start(NOON), timezone.now())
        other.execute("SET lock_timeout = '300ms'")
        assert other.execute(f"SELECT count(*) FROM {name_of(timezone.now())}").fetchone() == (1,)  # noqa: S608  # ours
        assert other.execute(copying(timezone.now(), name_of(timezone.now()))).rowcount == 1
        other.rollback()
        transaction.set_rollback(True)


def test_an_index_is_built_for_every_part_while_rows_are_written(stage):
    """As a later migration will; also after an attempt that was cut off."""
    state = MigrationLoader(None).project_state()
    step = AddIndexOnline("ledgerentry", Index(fields=["workspace", "-size"], name="made_up"))
    after = state.clone()
    step.state_forwards("prompts", after)
    try:
        for _ in range(2):
            with connection.schema_editor(atomic=False) as editor:
                step.database_forwards("prompts", editor, state, after)
            assert answer("SELECT indisvalid FROM pg_index WHERE indexrelid = 'made_up'::regclass")
        partitions.create_month_partition(get_month_start(NOON), timezone.now())
        children = answer("SELECT count(*) FROM pg_inherits WHERE inhparent = 'made_up'::regclass")
        assert children == len(names())
    finally:
        by_hand("DROP INDEX made_up", f"DROP TABLE {name_of(NOON)}")


# --- there and back ------------------------------------------------------------------------------------


@pytest.fixture
def one_table(transactional_db) -> Iterator[None]:
    """The ledger as it was before there were months; afterwards as a new installation has it."""
    go_back()
    yield
    if is_ledger_partitioned():
        go_back()
    empty([LEDGER_TABLE])
    go_forward()
    # The step after this one in the house's own order; going back took the wall along with the table.
    with connection.schema_editor(atomic=False) as editor:
        EnableRowLevelSecurity(LEDGER_TABLE).database_forwards("prompts", editor, None, None)
    create_partitions()
    assert (find_unprotected_tables(), list_unprotected_partitions()) == ([], [])


def go_forward() -> None:
    with connection.schema_editor(atomic=False) as editor:
        PartitionByMonth().database_forwards("prompts", editor, None, None)


def go_back() -> None:
    with connection.schema_editor(atomic=False) as editor:
        PartitionByMonth().database_backwards("prompts", editor, None, None)


def indexes() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexdef FROM pg_indexes WHERE tablename = %s ORDER BY indexname", [LEDGER_TABLE]
        )
        return [said for (said,) in cursor.fetchall()]


def file_of(table: str) -> int:
    return int(answer(f"SELECT pg_relation_filenode('{table}')"))


def test_the_ledger_is_laid_out_by_month_and_back_with_rows_on_both_sides(one_table, workspace):
    stage = make_stage(workspace)
    insert_rows(stage, [subtract_months(timezone.now(), 30), timezone.now()])
    file, kept, there = file_of(LEDGER_TABLE), [row.seal for row in stage.rows], indexes()
    go_forward()
    assert is_ledger_partitioned()
    assert create_partitions() == [name_of(add_months(get_month_start(timezone.now()), 2))]
    assert names() == {
        LEGACY_PARTITION,
        DEFAULT_PARTITION,
        name_of(add_months(get_month_start(timezone.now()), 2)),
    }
    assert file_of(LEGACY_PARTITION) == file, "no row was copied"
    assert (places(), list_unprotected_partitions()) == ([LEGACY_PARTITION] * 3, [])
    stage.fetch()
    insert_rows(stage, [NOON, add_months(get_month_start(timezone.now()), 2)])
    assert places()[3:] == [
        LEGACY_PARTITION,
        DEFAULT_PARTITION,
        name_of(add_months(get_month_start(timezone.now()), 2)),
    ]
    kept += [row.seal for row in stage.rows[3:]]
    assert rewritable({LEDGER_TABLE, *names()}) == []
    go_back()
    assert not is_ledger_partitioned()
    assert file_of(LEDGER_TABLE) == file
    assert indexes() == there
    assert refused(f"DELETE FROM {LEDGER_TABLE}")  # noqa: S608  # our own name
    stage.fetch()
    assert [row.seal for row in stage.rows[:-1]] == kept
    numbers = [row.pk for row in stage.rows]
    assert numbers == sorted(set(numbers))
    assert ledger_verdict(workspace).first is None
    go_forward()
    assert LEGACY_PARTITION in names()
    assert stage.fetch().status == 200
    assert len(stage.rows) == len(kept) + 2
    part = next(part for part in list_partitions() if part.name == LEGACY_PARTITION)
    assert part.until == add_months(get_month_start(NOON)), "a clock far ahead is believed"


@pytest.mark.hard
def test_bots_are_served_while_the_ledger_is_laid_out(one_table, workspace):
    stage = make_stage(workspace)
    stage.fetch()
    seen, done = list[int](), threading.Event()

    def fetch_on() -> None:
        while not done.is_set():
            seen.append(stage.fetch().status)
        connections.close_all()

    bot = threading.Thread(target=fetch_on)
    bot.start()
    try:
        for verb in (go_forward, create_partitions, go_back, go_forward):
            time.sleep(0.1)
            verb()
    finally:
        time.sleep(0.1)
        done.set()
        bot.join(20)
    assert set(seen) == {200}
    assert len(stage.rows) == len(seen) + 1
    assert ledger_verdict(workspace).first is None


def test_the_lock_is_held_for_no_look_at_rows(one_table, workspace):
    """The database says itself what it reads: the rows before that, and then only the empty default."""
    insert_rows(make_stage(workspace), [timezone.now()])
    said = heard_going_forward()
    assert tables_read(said) >= {LEDGER_TABLE}
    locked = said[said.index(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE") :]
    assert tables_read(locked) == {DEFAULT_PARTITION}


@pytest.mark.planted
def test_a_migration_that_reads_rows_under_its_lock_is_found(one_table, workspace, monkeypatch):
    insert_rows(make_stage(workspace), [timezone.now()])
    real = LedgerSchemaEditor.run

    def unproved(self: LedgerSchemaEditor, *statements: str) -> None:
        real(self, *(statement for statement in statements if "VALIDATE CONSTRAINT" not in statement))

    monkeypatch.setattr(LedgerSchemaEditor, "run", unproved)
    assert LEGACY_PARTITION in tables_read(heard_going_forward())


def tables_read(said: list[str]) -> set[str]:
    reading = ("verifying table", "rewriting table", "building index")
    found = {words.split('"')[-2] for words in said if words.startswith(reading)}
    return {name for name in found if not name.startswith("pg_toast")}


def heard_going_forward() -> list[str]:
    """Every statement of the migration, each followed by what the database says that it does."""
    said: list[str] = []

    def listen(execute, sql, params, many, context):
        said.append(sql)
        return execute(sql, params, many, context)

    connection.connection.add_notice_handler(lambda notice: said.append(notice.message_primary))
    by_hand("SET client_min_messages = debug1")
    with connection.execute_wrapper(listen):
        go_forward()
    by_hand("RESET client_min_messages")
    return said


def test_an_attempt_that_fails_leaves_a_ledger_that_serves_and_can_be_made_again(one_table, workspace):
    stage = make_stage(workspace)
    for fetched, word in enumerate(("CREATE UNIQUE INDEX", "LOCK TABLE", "CREATE TABLE", "CREATE SEQUENCE")):
        with pytest.raises(DatabaseError), statements_fail_at(word) as tried:
            go_forward()
        assert tried, word
        assert not is_ledger_partitioned(), word
        left = answer(f"SELECT count(*) FROM pg_constraint WHERE conname = '{BOUND_CONSTRAINT}'")  # noqa: S608  # ours
        assert (left, len(stage.rows)) == (0, fetched), word
        assert stage.fetch().status == 200
    go_forward()
    go_forward()
    assert len(stage.rows) == 4
    assert stage.fetch().status == 200


@pytest.mark.hard
def test_whoever_could_use_the_old_table_can_use_the_new_one(one_table, workspace):
    insert_rows(make_stage(workspace), [timezone.now()])
    by_hand("CREATE ROLE clerk", f"GRANT SELECT, INSERT ON {LEDGER_TABLE} TO clerk")
    try:
        go_forward()
        by_hand("SET LOCAL ROLE clerk", copying(timezone.now(), LEDGER_TABLE))
        assert len(places()) == 3
        with pytest.raises(DatabaseError, match="permission denied"):
            by_hand("SET LOCAL ROLE clerk", f"DELETE FROM {LEDGER_TABLE}")  # noqa: S608  # our own name
    finally:
        by_hand("DROP OWNED BY clerk", "DROP ROLE clerk")


def test_an_empty_ledger_begins_with_its_months(one_table):
    go_forward()
    assert names() == {DEFAULT_PARTITION}
    now = timezone.now()
    assert create_partitions() == [name_of(add_months(get_month_start(now), ahead)) for ahead in range(3)]
