"""The migration that partitions the ledger, forwards and backwards, on committed rows."""

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
    execute_sql,
    name_of,
    names,
    query_value,
    refused,
    rewritable,
    row_partitions,
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
    psycopg_only = {"cursor_factory", "context", "prepare_threshold"}
    return {
        name: value for name, value in connection.get_connection_params().items() if name not in psycopg_only
    }


def copy_row_sql(at: datetime, table: str) -> str:
    """Build a statement that copies one row with another timestamp."""
    columns = [str(field.column) for field in LedgerEntry._meta.concrete_fields if field.name != "id"]
    values = ", ".join(f"'{at.isoformat()}'" if name == "at" else name for name in columns)
    return f"INSERT INTO {LEDGER_TABLE} ({', '.join(columns)}) SELECT {values} FROM {table} LIMIT 1"  # noqa: S608  # ours


def test_creating_a_partition_blocks_no_reads_or_writes_of_other_months(stage):
    stage.fetch()
    with psycopg.connect(**other_connection()) as other, transaction.atomic():
        assert partitions.create_month_partition(get_month_start(NOON), timezone.now())
        other.execute("SET lock_timeout = '300ms'")
        assert other.execute(f"SELECT count(*) FROM {name_of(timezone.now())}").fetchone() == (1,)  # noqa: S608  # ours
        assert other.execute(copy_row_sql(timezone.now(), name_of(timezone.now()))).rowcount == 1
        other.rollback()
        transaction.set_rollback(True)


def test_an_index_is_built_on_every_partition_online(stage):
    """Build the index twice, as a later migration does, also after an interrupted attempt."""
    state = MigrationLoader(None).project_state()
    step = AddIndexOnline("ledgerentry", Index(fields=["workspace", "-size"], name="made_up"))
    after = state.clone()
    step.state_forwards("prompts", after)
    try:
        for _ in range(2):
            with connection.schema_editor(atomic=False) as editor:
                step.database_forwards("prompts", editor, state, after)
            assert query_value("SELECT indisvalid FROM pg_index WHERE indexrelid = 'made_up'::regclass")
        partitions.create_month_partition(get_month_start(NOON), timezone.now())
        children = query_value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'made_up'::regclass")
        assert children == len(names())
    finally:
        execute_sql("DROP INDEX made_up", f"DROP TABLE {name_of(NOON)}")


# --- forwards and backwards ----------------------------------------------------------------------------


@pytest.fixture
def one_table(transactional_db) -> Iterator[None]:
    """Undo the partitioning for the test; afterwards restore the state of a new installation."""
    go_back()
    yield
    if is_ledger_partitioned():
        go_back()
    empty([LEDGER_TABLE])
    go_forward()
    # The next migration step: reversing dropped the table together with its row-level security.
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
        return [definition for (definition,) in cursor.fetchall()]


def file_of(table: str) -> int:
    return int(query_value(f"SELECT pg_relation_filenode('{table}')"))


def test_the_ledger_is_partitioned_by_month_and_back_with_all_rows(one_table, workspace):
    stage = make_stage(workspace)
    insert_rows(stage, [subtract_months(timezone.now(), 30), timezone.now()])
    file, seals, index_definitions = file_of(LEDGER_TABLE), [row.seal for row in stage.rows], indexes()
    go_forward()
    assert is_ledger_partitioned()
    assert create_partitions() == [name_of(add_months(get_month_start(timezone.now()), 2))]
    assert names() == {
        LEGACY_PARTITION,
        DEFAULT_PARTITION,
        name_of(add_months(get_month_start(timezone.now()), 2)),
    }
    assert file_of(LEGACY_PARTITION) == file, "no row was copied"
    assert (row_partitions(), list_unprotected_partitions()) == ([LEGACY_PARTITION] * 3, [])
    stage.fetch()
    insert_rows(stage, [NOON, add_months(get_month_start(timezone.now()), 2)])
    assert row_partitions()[3:] == [
        LEGACY_PARTITION,
        DEFAULT_PARTITION,
        name_of(add_months(get_month_start(timezone.now()), 2)),
    ]
    seals += [row.seal for row in stage.rows[3:]]
    assert rewritable({LEDGER_TABLE, *names()}) == []
    go_back()
    assert not is_ledger_partitioned()
    assert file_of(LEDGER_TABLE) == file
    assert indexes() == index_definitions
    assert refused(f"DELETE FROM {LEDGER_TABLE}")  # noqa: S608  # our own name
    stage.fetch()
    assert [row.seal for row in stage.rows[:-1]] == seals
    numbers = [row.pk for row in stage.rows]
    assert numbers == sorted(set(numbers))
    assert ledger_verdict(workspace).first is None
    go_forward()
    assert LEGACY_PARTITION in names()
    assert stage.fetch().status == 200
    assert len(stage.rows) == len(seals) + 2
    partition = next(partition for partition in list_partitions() if partition.name == LEGACY_PARTITION)
    assert partition.until == add_months(get_month_start(NOON)), "a clock far ahead is believed"


@pytest.mark.hard
def test_bots_are_served_while_the_ledger_is_partitioned(one_table, workspace):
    stage = make_stage(workspace)
    stage.fetch()
    statuses, done = list[int](), threading.Event()

    def fetch_on() -> None:
        while not done.is_set():
            statuses.append(stage.fetch().status)
        connections.close_all()

    bot = threading.Thread(target=fetch_on)
    bot.start()
    try:
        for action in (go_forward, create_partitions, go_back, go_forward):
            time.sleep(0.1)
            action()
    finally:
        time.sleep(0.1)
        done.set()
        bot.join(20)
    assert set(statuses) == {200}
    assert len(stage.rows) == len(statuses) + 1
    assert ledger_verdict(workspace).first is None


def test_no_rows_are_read_while_the_table_is_locked(one_table, workspace):
    """The debug messages of the database name the tables it reads: under the lock, only the empty default."""
    insert_rows(make_stage(workspace), [timezone.now()])
    messages = migration_messages()
    assert tables_read(messages) >= {LEDGER_TABLE}
    locked = messages[messages.index(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE") :]
    assert tables_read(locked) == {DEFAULT_PARTITION}


@pytest.mark.planted
def test_a_migration_that_reads_rows_under_its_lock_is_found(one_table, workspace, monkeypatch):
    insert_rows(make_stage(workspace), [timezone.now()])
    real = LedgerSchemaEditor.run

    def without_validation(self: LedgerSchemaEditor, *statements: str) -> None:
        real(self, *(statement for statement in statements if "VALIDATE CONSTRAINT" not in statement))

    monkeypatch.setattr(LedgerSchemaEditor, "run", without_validation)
    assert LEGACY_PARTITION in tables_read(migration_messages())


def tables_read(messages: list[str]) -> set[str]:
    prefixes = ("verifying table", "rewriting table", "building index")
    tables = {message.split('"')[-2] for message in messages if message.startswith(prefixes)}
    return {name for name in tables if not name.startswith("pg_toast")}


def migration_messages() -> list[str]:
    """Return every statement of the migration, each followed by the database's debug messages."""
    messages: list[str] = []

    def record(execute, sql, params, many, context):
        messages.append(sql)
        return execute(sql, params, many, context)

    connection.connection.add_notice_handler(lambda notice: messages.append(notice.message_primary))
    execute_sql("SET client_min_messages = debug1")
    with connection.execute_wrapper(record):
        go_forward()
    execute_sql("RESET client_min_messages")
    return messages


def test_after_a_failed_attempt_the_ledger_works_and_the_migration_can_be_retried(one_table, workspace):
    stage = make_stage(workspace)
    for fetched, word in enumerate(("CREATE UNIQUE INDEX", "LOCK TABLE", "CREATE TABLE", "CREATE SEQUENCE")):
        with pytest.raises(DatabaseError), statements_fail_at(word) as statements:
            go_forward()
        assert statements, word
        assert not is_ledger_partitioned(), word
        constraints = query_value(f"SELECT count(*) FROM pg_constraint WHERE conname = '{BOUND_CONSTRAINT}'")  # noqa: S608  # ours
        assert (constraints, len(stage.rows)) == (0, fetched), word
        assert stage.fetch().status == 200
    go_forward()
    go_forward()
    assert len(stage.rows) == 4
    assert stage.fetch().status == 200


@pytest.mark.hard
def test_grants_of_the_old_table_are_kept(one_table, workspace):
    insert_rows(make_stage(workspace), [timezone.now()])
    execute_sql("CREATE ROLE clerk", f"GRANT SELECT, INSERT ON {LEDGER_TABLE} TO clerk")
    try:
        go_forward()
        execute_sql("SET LOCAL ROLE clerk", copy_row_sql(timezone.now(), LEDGER_TABLE))
        assert len(row_partitions()) == 3
        with pytest.raises(DatabaseError, match="permission denied"):
            execute_sql("SET LOCAL ROLE clerk", f"DELETE FROM {LEDGER_TABLE}")  # noqa: S608  # our own name
    finally:
        execute_sql("DROP OWNED BY clerk", "DROP ROLE clerk")


def test_an_empty_ledger_starts_with_monthly_partitions(one_table):
    go_forward()
    assert names() == {DEFAULT_PARTITION}
    now = timezone.now()
    assert create_partitions() == [name_of(add_months(get_month_start(now), ahead)) for ahead in range(3)]
