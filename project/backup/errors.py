"""Errors of backup and restore."""

import sqlite3

import psycopg
from django.db import DatabaseError

from project.database.roles import is_role_restricted

# Errors of the disk and the database; the drivers' own too, where Django is bypassed.
STORAGE_ERRORS = (OSError, DatabaseError, sqlite3.Error, psycopg.Error)


class BackupError(Exception):
    """Backup or restore failed; the message tells the operator what to do."""


def require_unrestricted_role() -> None:
    """Raise BackupError for a role restricted by row-level security: it would see only a part of the rows."""
    if is_role_restricted():
        raise BackupError(
            "This role does not own the tables: name the owner in DATABASE_URL. With compose, use migrate."
        )
