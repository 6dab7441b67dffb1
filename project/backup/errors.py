"""Errors of backup and restore."""

import sqlite3

import psycopg
from django.db import DatabaseError

from project.database.roles import is_role_restricted

# Errors of the disk and the database. Driver errors are included, because Django does not wrap them where
# code calls a driver directly.
STORAGE_ERRORS = (OSError, DatabaseError, sqlite3.Error, psycopg.Error)


class BackupError(Exception):
    """Backup or restore failed; the message tells the operator what to do."""


def require_unrestricted_role() -> None:
    """Raise BackupError if row-level security restricts the role: it would not see all rows."""
    if is_role_restricted():
        raise BackupError(
            "This role does not own the tables. Set DATABASE_URL to the owner. With Docker Compose, "
            "use the service migrate."
        )
