"""Wait for the write lock of a SQLite database.

SQLite itself waits in steps of up to 100 ms, so writers sleep while the lock is free: with 16 writers the
slowest waited for seconds.
"""

import sqlite3
import time
from threading import Lock
from typing import Any

POLL_SECONDS = 0.001
# Only one thread of a process polls. The others wait here.
_polling = Lock()


def begin_immediate(connection: Any, seconds: float) -> None:
    """Start a transaction with the write lock. Raise sqlite3.OperationalError if it takes too long."""
    deadline = time.monotonic() + seconds
    connection.execute("PRAGMA busy_timeout = 0")
    has_turn = False
    try:
        while not try_begin(connection, is_last=time.monotonic() >= deadline):
            has_turn = has_turn or _polling.acquire(timeout=max(0.0, deadline - time.monotonic()))
            time.sleep(POLL_SECONDS)
    finally:
        if has_turn:
            _polling.release()
        connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1_000)}")


def try_begin(connection: Any, *, is_last: bool) -> bool:
    """Return whether the transaction has begun. The last attempt raises the error of SQLite."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        # Extended codes have the basic code in their lowest byte.
        if is_last or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
