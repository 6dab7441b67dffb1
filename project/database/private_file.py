"""Create the SQLite file so that only its owner can read it."""

from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

PRIVATE_MODE = 0o600
# Suffixes of the database file, its write-ahead log and its shared-memory file.
FILE_SUFFIXES = ("", "-wal", "-shm")


def protect_new_database(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Take away the access of other users to a new file.

    SQLite creates the file when the first connection is opened; its schema version is 0 until the first table
    is created. A write-ahead log that is created later gets the mode of the file. The mode of a file with
    tables is left to the operator; `manage.py doctor` reports it.
    """
    if connection.vendor != "sqlite" or connection.is_in_memory_db():  # type: ignore[attr-defined]
        return
    if connection.connection.execute("PRAGMA schema_version").fetchone()[0]:
        return
    name = str(connection.settings_dict["NAME"])
    for path in [Path(f"{name}{suffix}") for suffix in FILE_SUFFIXES]:
        if path.is_file():
            path.chmod(PRIVATE_MODE)


def connect_signal() -> None:
    connection_created.connect(protect_new_database, dispatch_uid="protect_new_database")
