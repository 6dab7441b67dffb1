"""What keeps a backup from being made or put back."""

import sqlite3

import psycopg
from django.db import DatabaseError

# What the disk or a database may answer; the drivers' own where Django is passed by.
TROUBLES = (OSError, DatabaseError, sqlite3.Error, psycopg.Error)


class BackupError(Exception):
    """The message is for the operator, and says what to do."""
