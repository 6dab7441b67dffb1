"""Pipelines: order, errors, large values, interrupts, and what stays prepared after them."""

import os
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db import connection as django_connection
from psycopg.pq import TransactionStatus

from core.db.fast.pipeline import execute_together, read_together
from project.database.config import PREPARE_THRESHOLD
from project.database.postgresql import pipeline, prepared_statements
from project.database.postgresql.pipeline import StatementPipeline
from project.database.postgresql.prepared_statements import PreparedStatements, get_prepared_statements

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="needs PostgreSQL"),
]
# Any, because the type of Django's connection does not name the attributes of our backend.
connection: Any = django_connection
FAILING = ("SELECT 1 / %s::int", [0])
ECHO = ("SELECT %s::text", ["a"])


@pytest.fixture(autouse=True)
def new_connection() -> None:
    """The connections of the pool may have prepared statements of earlier tests."""
    connection.close()
    connection.close_pool()


def list_prepared() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return {statement for (statement,) in cursor.fetchall()}


def echo_until_prepared() -> None:
    """Execute the statement until the next execution prepares it."""
    for _ in range(PREPARE_THRESHOLD):
        with transaction.atomic():
            execute_together([ECHO])


def test_each_statement_gets_its_rows():
    with transaction.atomic():
        results = execute_together([("SELECT %s::int", [number]) for number in range(50)])
    assert results == [[(number,)] for number in range(50)]


def test_a_pipeline_begins_the_transaction_that_it_is_in():
    with transaction.atomic():
        [[(first,)]] = execute_together([("SELECT pg_current_xact_id()::text", [])])
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()::text")
            assert cursor.fetchone() == (first,)


def test_large_values_in_both_directions_do_not_block():
    """Client and server must not wait for each other while the buffers of both are full."""
    value = "x" * 2_000_000
    with transaction.atomic():
        results = execute_together([("SELECT %s::text || %s::text", [value, "y"])] * 12)
    assert [rows == [(f"{value}y",)] for rows in results] == [True] * 12


def test_the_first_error_is_raised_and_nothing_after_it_is_executed():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE noted (number int)")
    insert = "INSERT INTO noted VALUES (%s) RETURNING number"
    with pytest.raises(DatabaseError, match="division by zero"), transaction.atomic():
        execute_together([(insert, [1]), FAILING, (insert, [2]), ("SELECT nonsense", [])])
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM noted")
        assert cursor.fetchone() == (0,)


def test_a_statement_after_an_error_is_not_taken_for_prepared():
    echo_until_prepared()
    with pytest.raises(DatabaseError), transaction.atomic():
        execute_together([FAILING, ECHO])
    for _ in range(2):
        with transaction.atomic():
            assert execute_together([ECHO]) == [[("a",)]]


@pytest.mark.planted
def test_a_name_that_is_kept_when_it_is_sent_is_noticed(monkeypatch):
    """The planted fault: the name is kept before the server has prepared the statement."""
    echo_until_prepared()
    count = PreparedStatements.count_execution

    def count_and_add(self: PreparedStatements, key: Any) -> bool:
        is_due = count(self, key)
        if is_due:
            self.add(key, prepared_statements.build_name(*key))
        return is_due

    monkeypatch.setattr(PreparedStatements, "count_execution", count_and_add)
    with pytest.raises(DatabaseError), transaction.atomic():
        execute_together([FAILING, ECHO])
    with pytest.raises(DatabaseError, match="does not exist"), transaction.atomic():
        execute_together([ECHO])


def test_a_statement_before_an_error_stays_prepared():
    echo_until_prepared()
    with pytest.raises(DatabaseError), transaction.atomic():
        execute_together([ECHO, FAILING])
    with transaction.atomic():
        assert execute_together([ECHO, ECHO]) == [[("a",)]] * 2
    assert len([statement for statement in list_prepared() if statement == "SELECT $1::text"]) == 1


def test_a_rollback_keeps_prepared_statements():
    echo_until_prepared()
    with transaction.atomic():
        execute_together([ECHO])
        transaction.set_rollback(True)
    assert "SELECT $1::text" in list_prepared()


def test_statements_that_were_not_used_for_long_are_closed(monkeypatch):
    monkeypatch.setattr(prepared_statements, "MAX_PREPARED", 4)
    for number in range(8):
        for _ in range(PREPARE_THRESHOLD + 1):
            with transaction.atomic():
                execute_together([(f"SELECT {number} + %s::int", [1])])
    with transaction.atomic():
        execute_together([("SELECT 1", [])])
    kept = {f"SELECT {number} + $1::int" for number in range(4, 8)}
    assert {statement for statement in list_prepared() if "+ $1" in statement} == kept


def test_an_interrupted_pipeline_closes_its_connection(monkeypatch):
    """Results that were not read would be taken for those of the next statement."""

    def interrupt(pgconn: Any, number: int) -> Any:
        if number:
            raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "read_results", interrupt)
        with pytest.raises(KeyboardInterrupt), transaction.atomic():
            execute_together([ECHO])
    with transaction.atomic():
        assert execute_together([("SELECT %s::int", [7])]) == [[(7,)]]


def test_a_block_that_fails_sends_nothing():
    def fail() -> None:
        with connection.open_pipeline() as create_cursor:
            create_cursor().execute(*FAILING)
            raise KeyError

    with transaction.atomic():
        with pytest.raises(KeyError):
            fail()
        assert execute_together([ECHO]) == [[("a",)]]


def test_nothing_is_prepared_without_a_threshold():
    statements = PreparedStatements(None)
    assert not any(statements.count_execution((b"SELECT 1", ())) for _ in range(10))


def test_a_pooled_connection_keeps_its_statements():
    connection.ensure_connection()
    raw = connection.connection
    assert StatementPipeline(raw).prepared is get_prepared_statements(raw)


# --- reads outside of a transaction ----------------------------------------------------------------------


def count_pipelines(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of commands of each pipeline."""
    sizes: list[int] = []
    exchange = StatementPipeline.exchange

    def count_and_exchange(pipeline: StatementPipeline, commands: Any) -> list[Any]:
        sizes.append(len(commands))
        return exchange(pipeline, commands)

    monkeypatch.setattr(StatementPipeline, "exchange", count_and_exchange)
    return sizes


def test_several_reads_outside_of_a_transaction_are_sent_together(monkeypatch):
    sizes = count_pipelines(monkeypatch)
    assert read_together([ECHO, ("SELECT %s::int", [7])]) == [[("a",)], [(7,)]]
    assert sizes == [2]
    assert connection.get_autocommit()
    assert connection.connection.info.transaction_status == TransactionStatus.IDLE


def test_a_single_read_outside_of_a_transaction_needs_no_pipeline(monkeypatch):
    sizes = count_pipelines(monkeypatch)
    assert read_together([ECHO]) == [[("a",)]]
    assert sizes == []


def test_a_failed_read_leaves_the_connection_usable():
    with pytest.raises(DatabaseError, match="division by zero"):
        read_together([ECHO, FAILING, ECHO])
    assert connection.connection.info.transaction_status == TransactionStatus.IDLE
    assert read_together([ECHO, ECHO]) == [[("a",)], [("a",)]]


def test_statements_that_write_are_not_pipelined_outside_of_a_transaction(monkeypatch):
    """Each of them is committed by itself, as before."""
    sizes = count_pipelines(monkeypatch)
    execute_together([ECHO, ECHO])
    assert sizes == []
