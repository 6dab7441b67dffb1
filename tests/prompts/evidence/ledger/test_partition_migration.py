"""The migration that partitions the ledger, forwards and backwards, on committed rows."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import Index
from django.utils import timezone

from core.db.expiry import AllowWorkspaceRemoval
from core.db.online_migrations import AddIndexOnline
from core.db.row_level_security import EnableRowLevelSecurity
from project.database.rls_audit import find_unprotected_tables
from prompts.evidence.ledger import partitions
from prompts.evidence.ledger.partition_migration import PartitionByMonth
from prompts.evidence.ledger.partitions import (
    DEFAULT_PARTITION,
    LEDGER_TABLE,
    add_months,
    create_partitions,
    get_month_start,
    is_ledger_partitioned,
    list_unprotected_partitions,
)
from prompts.evidence.ledger.retention import subtract_months
from prompts.models import LedgerEntry
from tests.database_cleanup import empty
from tests.prompts.evidence.ledger.test_partitions import (
    NOON,
    execute_sql,
    name_of,
    names,
    query_value,
    refused,
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
    pytest.mark.slow,
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
    # The next migration steps: reversing dropped the table together with its row-level security, and the
    # trigger function was created without the exception for deleted workspaces.
    with connection.schema_editor(atomic=False) as editor:
        EnableRowLevelSecurity(LEDGER_TABLE).database_forwards("prompts", editor, None, None)
        AllowWorkspaceRemoval([LEDGER_TABLE], days=14).database_forwards("prompts", editor, None, None)
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


def test_the_ledger_is_partitioned_by_month_and_back_with_all_rows(one_table, workspace):
    stage = make_stage(workspace)
    insert_rows(stage, [subtract_months(timezone.now(), 1), timezone.now()])
    seals, index_definitions = [row.seal for row in stage.rows], indexes()
    go_forward()
    assert is_ledger_partitioned()
    assert set(row_partitions()) == {DEFAULT_PARTITION}
    months = [add_months(get_month_start(timezone.now()), ahead) for ahead in range(-1, 3)]
    assert sorted(create_partitions()) == sorted(map(name_of, months))
    assert names() == {DEFAULT_PARTITION, *map(name_of, months)}
    assert set(row_partitions()) == {name_of(months[0]), name_of(months[1])}
    stage.fetch()
    insert_rows(stage, [NOON, months[3]])
    assert set(row_partitions()[-2:]) == {DEFAULT_PARTITION, name_of(months[3])}
    assert list_unprotected_partitions() == []
    seals += [row.seal for row in stage.rows[len(seals) :]]
    go_back()
    assert not is_ledger_partitioned()
    assert indexes() == index_definitions
    assert refused(f"DELETE FROM {LEDGER_TABLE}")  # noqa: S608  # our own name
    stage.fetch()
    assert [row.seal for row in stage.rows[:-1]] == seals
    numbers = [row.pk for row in stage.rows]
    assert numbers == sorted(set(numbers))
    assert ledger_verdict(workspace).first is None
    go_forward()
    assert stage.fetch().status == 200
    assert len(stage.rows) == len(seals) + 2


def test_after_a_failed_attempt_the_ledger_works_and_the_migration_can_be_retried(one_table, workspace):
    stage = make_stage(workspace)
    for fetched, word in enumerate(("LOCK TABLE", "CREATE TABLE", "CREATE SEQUENCE", "INSERT INTO prompts")):
        with pytest.raises(DatabaseError), statements_fail_at(word) as statements:
            go_forward()
        assert statements, word
        assert not is_ledger_partitioned(), word
        assert len(stage.rows) == fetched, word
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
