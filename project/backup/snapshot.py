"""The one moment that everything in a backup is of."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from prompts.integrity.verify.row_stream import read_only_snapshot

# No limit of a page holds here. Whoever would not see all rows is refused and not shown some. And rows look
# the same as text wherever they are read.
SNAPSHOT_SETTINGS = (
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL row_security = off",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, MDY'",
    "SET LOCAL IntervalStyle = 'postgres'",
    "SET LOCAL bytea_output = 'hex'",
    "SET LOCAL extra_float_digits = 1",
)


@contextmanager
def open_snapshot() -> Iterator[str]:
    """While it is held all questions see the same rows, and nobody who writes is kept waiting.

    Yields the name by which another process can see the same rows; in SQLite there is none, and whoever
    copies uses this connection.
    """
    with read_only_snapshot(), connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            # Until something is read the moment has not begun.
            cursor.execute("SELECT count(*) FROM sqlite_schema")
            cursor.fetchone()
            yield ""
            return
        for statement in SNAPSHOT_SETTINGS:
            cursor.execute(statement)
        cursor.execute("SELECT pg_export_snapshot()")
        yield str(cursor.fetchone()[0])
