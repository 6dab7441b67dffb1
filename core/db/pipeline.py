"""Execute several statements in one round trip to the database."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import connection

# SQL with placeholders, and its parameters.
Statement = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]


def execute_together(statements: Sequence[Statement]) -> list[Rows]:
    """Execute statements that return rows, in order, and return the rows of each.

    In a transaction on PostgreSQL they are sent together, in pipeline mode. If one of them fails, those after
    it are not executed, and the transaction can only be rolled back. Elsewhere they are sent one by one.
    """
    open_pipeline: Any = getattr(connection, "open_pipeline", None)
    if open_pipeline is None or not connection.in_atomic_block or len(statements) < 2:
        return [execute_one(sql, params) for sql, params in statements]
    connection.validate_no_broken_transaction()
    began = time.monotonic()
    with open_pipeline() as create_cursor:
        cursors = [create_cursor() for _ in statements]
        for cursor, (sql, params) in zip(cursors, statements, strict=True):
            execute_with_wrappers(cursor, sql, params)
    rows = [cursor.fetchall() for cursor in cursors]
    log_statements(statements, time.monotonic() - began)
    return rows


def execute_one(sql: str, params: Sequence[Any]) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def execute_with_wrappers(cursor: Any, sql: str, params: Sequence[Any]) -> None:
    """Call Django's execute wrappers, such as the deadline of the request, which a raw cursor ignores."""

    def send(sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        return cursor.execute(sql, params)

    executor: Any = send
    for wrapper in reversed(connection.execute_wrappers):
        executor = partial(wrapper, executor)
    executor(sql, params, False, {"connection": connection, "cursor": cursor})


def log_statements(statements: Sequence[Statement], seconds: float) -> None:
    """Add the statements to Django's query log, if it is on, with an equal share of the time for each."""
    if connection.queries_logged:
        share = f"{seconds / len(statements):.3f}"
        connection.queries_log.extend(
            {"sql": sql % tuple(params), "time": share} for sql, params in statements
        )
