"""Wait for the write lock of a SQLite database.

SQLite itself waits in steps of up to 100 ms, so writers sleep while the lock is free: with 16 writers the
slowest waited for seconds. Here writers take turns. The one that has the turn tries to get the lock every
millisecond; the others wait for the turn. So a process that writes without a pause does not keep the lock.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import Any

POLL_SECONDS = 0.001


def begin_immediate(connection: Any, path: str, seconds: float) -> None:
    """Start a transaction with the write lock. Raise sqlite3.OperationalError if it takes too long."""
    deadline = time.monotonic() + seconds
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with get_turn(path, os.getpid()).taken(deadline):
            while not try_begin(connection, is_last=time.monotonic() >= deadline):
                time.sleep(POLL_SECONDS)
    finally:
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


class Turn:
    """The turn among the threads of this process, and among the processes by a lock on a file."""

    def __init__(self, path: str) -> None:
        self.thread_lock = Lock()
        self.file: int | None = None
        # Without this file, for example for a database in memory, only threads of this process take turns.
        with suppress(OSError):
            if os.path.exists(path):
                self.file = os.open(f"{path}-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def taken(self, deadline: float) -> Iterator[None]:
        """Take the turn, or go on without it after the deadline."""
        has_thread_lock = self.thread_lock.acquire(timeout=max(0.0, deadline - time.monotonic()))
        try:
            has_file_lock = has_thread_lock and self.lock_file(deadline)
            try:
                yield
            finally:
                if has_file_lock and self.file is not None:
                    fcntl.flock(self.file, fcntl.LOCK_UN)
        finally:
            if has_thread_lock:
                self.thread_lock.release()

    def lock_file(self, deadline: float) -> bool:
        while self.file is not None:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(POLL_SECONDS)
            else:
                return True
        return False


@cache
def get_turn(path: str, process: int) -> Turn:
    """Return the turn of a database. Processes after a fork need files of their own to exclude each other."""
    return Turn(path)
