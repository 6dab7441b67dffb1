"""Remove old page images from SQLite's write-ahead log, so that erased text does not stay in it."""

import structlog
from django.db import connection

log = structlog.get_logger(__name__)


def truncate_write_ahead_log() -> bool:
    """Copy the write-ahead log into the database file and truncate it; do nothing on PostgreSQL.

    Must be called outside of a transaction. It waits for readers of older pages as long as a statement waits
    for a lock. Return False if they took longer: the log then keeps its old pages until the next call, or
    until the last connection closes.
    """
    if connection.vendor != "sqlite":
        return True
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        is_busy, _, _ = cursor.fetchone()
    if is_busy:
        log.warning("wal_truncate_failed", reason="another connection was reading")
    return not is_busy
