import os
import re
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from core.db.fast.pipeline import Rows, Statement, execute_together, read_together
from core.db.workspace_scope import no_workspace, workspace_scope
from project.database.config import PREPARE_THRESHOLD
from project.database.postgresql.prepared_statements import build_name
from tests.project.database.restricted_role import as_app_role

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="needs PostgreSQL"),
]
SELECT = "SELECT name FROM personas_workspace WHERE name <> %s ORDER BY name"
PREPARED_SQL = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT name FROM pers%'"


@pytest.fixture(autouse=True)
def new_connection() -> None:
    """The connections of the pool may have prepared statements of earlier tests."""
    wrapper: Any = connection
    wrapper.close()
    wrapper.close_pool()


@pytest.fixture
def renamed_column(new_connection):
    """Change the type of a column from another connection, as a migration does, and back."""
    connection.ensure_connection()
    address = connection.connection.info.dsn

    def alter(kind: str) -> None:
        with psycopg.connect(address) as other:
            other.execute(f"ALTER TABLE personas_workspace ALTER COLUMN name TYPE {kind}")

    yield alter
    connection.close()
    alter("varchar(80)")


def select_names() -> Rows:
    with transaction.atomic():
        return execute_together([(SELECT, ["x"])])[0]


def count_prepared() -> int:
    with connection.cursor() as cursor:
        cursor.execute(PREPARED_SQL)
        return int(cursor.fetchone()[0])


def test_a_repeated_statement_is_prepared(workspace):
    for _ in range(PREPARE_THRESHOLD):
        select_names()
    assert count_prepared() == 0
    select_names()
    assert count_prepared() == 1
    assert select_names() == [("Harbour",)]


def test_a_statement_is_named_by_its_digest(workspace):
    """The planted fault is psycopg itself: it would name the first statement of each connection `_pg3_0`."""
    for _ in range(PREPARE_THRESHOLD + 1):
        select_names()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, statement FROM pg_prepared_statements WHERE statement LIKE '%ORDER BY name'"
        )
        [(name, statement)] = cursor.fetchall()
    other = build_name(statement.encode(), ())
    assert re.fullmatch(r"q_[0-9a-f]{32}", name)
    assert build_name(statement.encode() + b" DESC", ()) != other != build_name(statement.encode(), (20,))


def test_a_stale_plan_fails_once_per_connection(workspace, renamed_column):
    for _ in range(PREPARE_THRESHOLD + 2):
        select_names()
    renamed_column("varchar(90)")
    with pytest.raises(DatabaseError, match="cached plan"):
        select_names()
    assert select_names() == [("Harbour",)]


def test_reads_outside_of_a_transaction_are_repeated_after_a_stale_plan(workspace, renamed_column):
    statements = [(SELECT, ["x"]), (SELECT, ["x"])]
    for _ in range(PREPARE_THRESHOLD + 2):
        read_together(statements)
    assert count_prepared() == 1
    renamed_column("varchar(90)")
    assert read_together(statements) == [[("Harbour",)], [("Harbour",)]]


def test_reads_outside_of_a_transaction_are_restricted_to_the_scope(workspace, elsewhere):
    statement: Statement = ("SELECT workspace_id FROM personas_membership ORDER BY 1", [])
    with as_app_role():
        for one in (workspace, elsewhere) * (PREPARE_THRESHOLD + 2):
            with workspace_scope(one.pk):
                for rows in read_together([statement, statement]):
                    assert {pk for (pk,) in rows} == {one.pk}
        with no_workspace():
            assert read_together([statement, statement]) == [[], []]
        with workspace_scope(workspace.pk), pytest.raises(DatabaseError, match="division by zero"):
            read_together([statement, ("SELECT 1 / %s::int", [0])])
        with workspace_scope(elsewhere.pk):
            assert {pk for (pk,) in read_together([statement, statement])[1]} == {elsewhere.pk}


def test_a_prepared_statement_reads_the_workspace_of_the_scope(workspace, elsewhere):
    """Row-level security applies at each execution, not when the statement is prepared."""
    sql = "SELECT workspace_id FROM personas_membership ORDER BY 1"
    with as_app_role():
        for one in (workspace, elsewhere) * (PREPARE_THRESHOLD + 2):
            with workspace_scope(one.pk), transaction.atomic():
                [rows] = execute_together([(sql, [])])
            assert {pk for (pk,) in rows} == {one.pk}
