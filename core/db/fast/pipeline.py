"""Execute several statements in one round trip to the database."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, NotSupportedError, connections

# SQL with placeholders, and its parameters.
Statement = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]
# Fewer reads than this are not sent in a pipeline: a single statement gains nothing from one.
MIN_PIPELINED = 2


def get_connection() -> Any:
    """Return the connection of this thread. `django.db.connection` looks it up for each attribute."""
    return connections[DEFAULT_DB_ALIAS]


def execute_together(statements: Sequence[Statement]) -> list[Rows]:
    """Execute statements that return rows, in order, and return the rows of each.

    In a transaction on PostgreSQL they are sent together, in pipeline mode. If one of them fails, those after
    it are not executed, and the transaction can only be rolled back. Elsewhere they are sent one by one.
    """
    connection = get_connection()
    if not hasattr(connection, "open_pipeline") or not connection.in_atomic_block:
        return [execute_one(connection, sql, params) for sql, params in statements]
    if not statements:
        return []
    connection.validate_no_broken_transaction()
    return execute_pipeline(connection, statements)


def read_together(statements: Sequence[Statement]) -> list[Rows]:
    """Execute statements that only read, and return the rows of each.

    On PostgreSQL several of them are sent together outside of a transaction too, in one of their own.
    """
    connection = get_connection()
    if len(statements) < MIN_PIPELINED or not getattr(connection, "can_pipeline_reads", False):
        return execute_together(statements)
    if connection.in_atomic_block:
        return execute_together(statements)
    try:
        return execute_pipeline(connection, statements)
    except NotSupportedError:
        # A migration has changed a table, and a prepared statement no longer matches it.
        connection.close()
        return execute_together(statements)


def execute_pipeline(connection: Any, statements: Sequence[Statement]) -> list[Rows]:
    began = time.monotonic()
    cursors = []
    with connection.open_pipeline() as create_cursor:
        for sql, params in statements:
            cursor = create_cursor()
            cursors.append(cursor)
            if connection.execute_wrappers:
                execute_with_wrappers(connection, cursor, sql, params)
            else:
                cursor.execute(sql, params)
    rows = [cursor.fetchall() for cursor in cursors]
    if connection.queries_logged:
        log_statements(connection, statements, time.monotonic() - began)
    return rows


def execute_one(connection: Any, sql: str, params: Sequence[Any]) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def execute_with_wrappers(connection: Any, cursor: Any, sql: str, params: Sequence[Any]) -> None:
    """Call Django's execute wrappers, such as the deadline of the request, which a raw cursor ignores."""

    def send(sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        return cursor.execute(sql, params)

    executor: Any = send
    for wrapper in reversed(connection.execute_wrappers):
        executor = partial(wrapper, executor)
    executor(sql, params, False, {"connection": connection, "cursor": cursor})


def log_statements(connection: Any, statements: Sequence[Statement], seconds: float) -> None:
    """Add the statements to Django's query log, with an equal share of the time for each."""
    share = f"{seconds / len(statements):.3f}"
    connection.queries_log.extend({"sql": sql % tuple(params), "time": share} for sql, params in statements)
