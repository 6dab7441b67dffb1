"""Create the SQLite file so that only its owner can read it."""

from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

PRIVATE_MODE = 0o600


def protect_new_database(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Take away the access of other users to a new file.

    SQLite creates the file when the first connection is opened. The write-ahead log gets the same mode later.
    The mode of an existing file is left to the operator; `manage.py doctor` reports it.
    """
    if connection.vendor != "sqlite" or connection.is_in_memory_db():  # type: ignore[attr-defined]
        return
    path = Path(str(connection.settings_dict["NAME"]))
    if path.is_file() and path.stat().st_size == 0:
        path.chmod(PRIVATE_MODE)


def connect_signal() -> None:
    connection_created.connect(protect_new_database, dispatch_uid="protect_new_database")
