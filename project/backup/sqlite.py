"""SQLite: its own online copy, through the connection that holds the moment."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection

from project.backup.checksums import EXCLUDED_TABLES, list_tables
from project.backup.errors import BackupError

DUMP_FORMAT, DUMP_FILE = "sqlite", "database.sqlite3"


def dump_sqlite(folder: Path) -> None:
    """All pages as the open transaction sees them; those who write go on meanwhile."""
    source: Any = connection.connection
    passing = sorted(EXCLUDED_TABLES & set(list_tables()))
    with closing(sqlite3.connect(folder / DUMP_FILE, isolation_level=None)) as copy:
        # Put on the disk at the end, once for all files.
        copy.execute("PRAGMA synchronous = OFF")
        source.backup(copy)
        # One plain file, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        # Overwritten, not only taken off the list: a backup is carried around.
        copy.execute("PRAGMA secure_delete = ON")
        for table in passing:
            copy.execute(f'DELETE FROM "{table}"')  # noqa: S608  # a table of ours


def load_sqlite(folder: Path) -> None:
    """Into the file of the settings, in one transaction of SQLite's own."""
    target = str(connection.settings_dict["NAME"])
    connection.close()
    with (
        closing(sqlite3.connect(f"file:{folder / DUMP_FILE}?mode=ro", uri=True)) as copy,
        closing(sqlite3.connect(target)) as database,
    ):
        if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise BackupError("The database in this backup is damaged. Take another one.")
        copy.backup(database)
