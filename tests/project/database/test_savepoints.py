"""Savepoints are sent with the next statement. They undo what they would undo if they were sent at once."""

import os
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db import connection as django_connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.db.fast.pipeline import execute_together
from project.database.postgresql.base import DatabaseWrapper

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="SQLite sends savepoints at once"),
]

# Any, because the type of Django's connection does not name the attributes of our backend.
connection: Any = django_connection
INSERT = "INSERT INTO numbers (number) VALUES (%s) RETURNING number"
# How a number is inserted: by a new cursor, by one that was created before, or in a pipeline.
WAYS = ("new cursor", "old cursor", "pipeline")
# A block is a list of inserts and inner blocks, and whether it fails at its end.
Step = Any
inserts = st.sampled_from(WAYS)
blocks = st.recursive(
    st.tuples(st.lists(inserts, max_size=2), st.booleans()),
    lambda inner: st.tuples(st.lists(inserts | inner, max_size=4), st.booleans()),
    max_leaves=8,
)


class Failure(Exception):
    pass


@pytest.fixture
def numbers():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE numbers (number int PRIMARY KEY)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE numbers")


def fail() -> None:
    raise Failure


def list_numbers() -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM numbers")
        return {number for (number,) in cursor.fetchall()}


class Interpreter:
    """Executes a block, and computes which numbers must be there."""

    def __init__(self, old_cursor: Any) -> None:
        self.old_cursor, self.count = old_cursor, 0

    def insert(self, way: str) -> int:
        self.count += 1
        if way == "pipeline":
            execute_together([(INSERT, [self.count]), ("SELECT 1", [])])
        elif way == "old cursor":
            self.old_cursor.execute(INSERT, [self.count])
        else:
            with connection.cursor() as cursor:
                cursor.execute(INSERT, [self.count])
        return self.count

    def run(self, block: Step) -> set[int]:
        steps, is_failing = block
        kept: set[int] = set()
        try:
            with transaction.atomic():
                for step in steps:
                    kept |= {self.insert(step)} if isinstance(step, str) else self.run(step)
                if is_failing:
                    fail()
        except Failure:
            return set()
        return kept


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(block=blocks)
def test_any_nesting_keeps_what_did_not_fail(numbers, block):
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE numbers")
        expected = Interpreter(cursor).run(block)
    assert list_numbers() == expected
    assert connection.unsent == []


def test_a_savepoint_without_statements_is_not_sent(numbers):
    with transaction.atomic():
        with transaction.atomic():
            assert connection.unsent
        assert connection.unsent == []


def test_a_failed_statement_is_undone_to_the_savepoint(numbers):
    with transaction.atomic():
        execute_together([(INSERT, [1])])
        with pytest.raises(DatabaseError), transaction.atomic():
            execute_together([(INSERT, [2]), (INSERT, [1])])
        execute_together([(INSERT, [3])])
    assert list_numbers() == {1, 3}


def test_a_cursor_that_does_not_send_savepoints_is_noticed(numbers, monkeypatch):
    """The planted fault: a statement overtakes its savepoint, so a failure does not undo it."""
    monkeypatch.setattr(DatabaseWrapper, "send_savepoints", lambda self: None)
    with connection.cursor() as cursor:
        assert Interpreter(cursor).run((["new cursor", (["new cursor"], True)], False)) != list_numbers()
