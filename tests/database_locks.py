"""Locks of the test database: whether another connection waits for one, and threads that wait long."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, connection

LIMITS = ("lock_timeout", "statement_timeout")


def is_waiting_for_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return bool(cursor.fetchone()[0])


@contextmanager
def patient_connection() -> Iterator[None]:
    """Wait up to a minute for locks in this thread, and close its connection at the end.

    The product waits two seconds. On a busy machine, the last of many threads that queue for a row waits
    longer.
    """
    try:
        set_limits("SET {} = '60s'")
        yield
    finally:
        # The pool may give the connection to another thread.
        with suppress(DatabaseError):
            set_limits("RESET {}")
        connection.close()


def set_limits(statement: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for limit in LIMITS:
                cursor.execute(statement.format(limit))
