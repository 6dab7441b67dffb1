"""One moment of the database for a long look: what is written meanwhile is not seen half."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_moment() -> Iterator[None]:
    """All questions inside see the same rows, and writers are not kept waiting; nothing can be written."""
    if connection.in_atomic_block:
        # The caller's transaction, which has its own view already.
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        with read_transaction():
            yield


@contextmanager
def read_transaction() -> Iterator[None]:
    """In SQLite: Django's own transactions take the lock of a writer, which this must not."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
