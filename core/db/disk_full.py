"""Recognise the error of a database that has no room left on its disk."""

import sqlite3

import psycopg

# PostgreSQL's code for disk_full, in class 53 (insufficient resources).
DISK_FULL_SQLSTATE = "53100"


def is_disk_full(error: BaseException) -> bool:
    """Return whether the driver's error, from which Django raised this one, says that the disk is full."""
    cause = error.__cause__
    if isinstance(cause, psycopg.Error):
        return cause.sqlstate == DISK_FULL_SQLSTATE
    return isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
