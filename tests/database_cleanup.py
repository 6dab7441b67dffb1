"""Empties the tables after a test that has committed: quickly, and beside workers that still use them."""

import time
from typing import Any

from django.contrib.auth.management import create_permissions
from django.contrib.contenttypes.management import create_contenttypes
from django.db import OperationalError, connection, transaction
from django.db.models.signals import post_migrate

# The same for every test, so they stay; Django would empty them and write hundreds of rows anew each time.
LASTING = {"auth_permission", "django_content_type"}
TRIES, PAUSE = 20, 0.1


def empty_quickly() -> None:
    """Change how this process empties its tables, once they are there."""
    post_migrate.disconnect(create_contenttypes)
    post_migrate.disconnect(dispatch_uid=f"{create_permissions.__module__}.create_permissions")
    # For every connection of this process: a thread gets another one as soon as a browser's loop runs in it.
    ops: Any = type(connection.ops)
    # Django asks for statements and hands them over; which are needed is known only then.
    ops.sql_flush = lambda self, style, tables, **_: [table for table in tables if table not in LASTING]
    ops.execute_sql_flush = lambda self, tables: empty(tables)


def empty(tables: list[str]) -> None:
    """A worker that another test left running may hold a row, or write one meanwhile: then once more."""
    for _ in range(TRIES):
        try:
            if not (left := filled(tables)):
                return
            with transaction.atomic(), connection.cursor() as cursor:
                for statement in STATEMENTS[connection.vendor](left):
                    cursor.execute(statement)
        except OperationalError:
            time.sleep(PAUSE)
    raise RuntimeError(f"Somebody keeps writing to {', '.join(filled(tables))}.")


def filled(tables: list[str]) -> list[str]:
    """Those with rows; most tests fill a few of some eighty."""
    asked = " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quoted(table)})"  # noqa: S608  # names of our tables
        for table in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(asked)
        return [name for (name,) in cursor.fetchall()]


def quoted(table: str) -> str:
    return str(connection.ops.quote_name(table))


def deletions(tables: list[str]) -> list[str]:
    return [f"DELETE FROM {quoted(table)}" for table in tables]  # noqa: S608  # names of our tables


def on_postgres(tables: list[str]) -> list[str]:
    """As a replica: neither links nor the triggers of tables that only grow are asked."""
    return ["SET LOCAL session_replication_role = replica", *deletions(tables)]


def on_sqlite(tables: list[str]) -> list[str]:
    """Triggers of tables that only grow refuse it: they are laid aside meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
    dropped = [f"DROP TRIGGER {quoted(name)}" for name, _ in triggers]
    return [*dropped, *deletions(tables), *(sql for _, sql in triggers)]


STATEMENTS = {"postgresql": on_postgres, "sqlite": on_sqlite}
