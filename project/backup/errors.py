"""What keeps a backup from being made or put back."""

import sqlite3

import psycopg
from django.db import DatabaseError

from project.database.roles import is_role_restricted

# What the disk or a database may answer; the drivers' own where Django is passed by.
STORAGE_ERRORS = (OSError, DatabaseError, sqlite3.Error, psycopg.Error)


class BackupError(Exception):
    """The message is for the operator, and says what to do."""


def require_unrestricted_role() -> None:
    """It would take one workspace for all of them, or find nothing at all."""
    if is_role_restricted():
        raise BackupError(
            "This role does not own the tables: name the owner in DATABASE_URL. With compose, use migrate."
        )
