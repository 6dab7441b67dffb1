"""Dump and restore SQLite with its online backup API."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection

from project.backup.checksums import EXCLUDED_TABLES, list_tables
from project.backup.errors import BackupError

DUMP_FORMAT, DUMP_FILE = "sqlite", "database.sqlite3"


def dump_sqlite(folder: Path) -> None:
    """Copy the database through the connection of the open snapshot, without blocking writers."""
    source: Any = connection.connection
    excluded = sorted(EXCLUDED_TABLES & set(list_tables()))
    with closing(sqlite3.connect(folder / DUMP_FILE, isolation_level=None)) as copy:
        # SQLite need not sync the file to disk, because write_manifest syncs all files at the end.
        copy.execute("PRAGMA synchronous = OFF")
        source.backup(copy)
        # Leave WAL mode, so that the dump is a single file without a write-ahead log.
        copy.execute("PRAGMA journal_mode = DELETE")
        # Overwrite deleted rows with zeros. Otherwise session data would remain in the file.
        copy.execute("PRAGMA secure_delete = ON")
        for table in excluded:
            copy.execute(f'DELETE FROM "{table}"')  # noqa: S608  # a table of ours


def load_sqlite(folder: Path) -> None:
    """Copy the backup into the configured database file, in one transaction."""
    target = str(connection.settings_dict["NAME"])
    connection.close()
    with (
        closing(sqlite3.connect(f"file:{folder / DUMP_FILE}?mode=ro", uri=True)) as copy,
        closing(sqlite3.connect(target)) as database,
    ):
        if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise BackupError("The database in this backup is damaged. Use another backup.")
        copy.backup(database)
