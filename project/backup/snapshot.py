"""The database snapshot that a backup is read from."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from prompts.evidence.integrity.verify.row_stream import read_only_snapshot

# No timeouts. With row_security off, a restricted role gets an error instead of a part of the rows. The other
# settings make the text form of a row the same on every server, because checksums are computed from it.
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
    """Open a read-only snapshot: all queries see the same rows, and writers are not blocked.

    Yield the snapshot id, with which pg_dump reads the same snapshot. On SQLite the id is empty: the dump
    uses this connection.
    """
    with read_only_snapshot(), connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            # SQLite starts the snapshot with the first read.
            cursor.execute("SELECT count(*) FROM sqlite_schema")
            cursor.fetchone()
            yield ""
            return
        for statement in SNAPSHOT_SETTINGS:
            cursor.execute(statement)
        cursor.execute("SELECT pg_export_snapshot()")
        yield str(cursor.fetchone()[0])
