"""Empties the tables after a test that committed: fast, and while workers may still use them."""

import time
from typing import Any

from django.contrib.auth.management import create_permissions
from django.contrib.contenttypes.management import create_contenttypes
from django.db import OperationalError, connection, transaction
from django.db.models.signals import post_migrate

# Constant tables are kept; Django would empty them and write hundreds of rows again each time.
CONSTANT_TABLES = {"auth_permission", "django_content_type"}
TRIES, PAUSE = 20, 0.1


def install_fast_flush() -> None:
    """Replace Django's flush in this process; call it after the tables are created."""
    post_migrate.disconnect(create_contenttypes)
    post_migrate.disconnect(dispatch_uid=f"{create_permissions.__module__}.create_permissions")
    # On the class, because a thread gets another connection when a browser's event loop runs in it.
    ops: Any = type(connection.ops)
    # Django generates statements first and runs them later; which are needed is known only then.
    ops.sql_flush = lambda self, style, tables, **_: [
        table for table in tables if table not in CONSTANT_TABLES
    ]
    ops.execute_sql_flush = lambda self, tables: empty(tables)


def empty(tables: list[str]) -> None:
    """Delete all rows; retried, because a worker of another test may hold a lock or write a row meanwhile."""
    for _ in range(TRIES):
        try:
            if not (left := list_filled_tables(tables)):
                return
            with transaction.atomic(), connection.cursor() as cursor:
                for statement in STATEMENTS[connection.vendor](left):
                    cursor.execute(statement)
        except OperationalError:
            time.sleep(PAUSE)
    raise RuntimeError(f"Somebody keeps writing to {', '.join(list_filled_tables(tables))}.")


def list_filled_tables(tables: list[str]) -> list[str]:
    """List the tables with rows; most tests fill few of some eighty."""
    query = " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quoted(table)})"  # noqa: S608  # names of our tables
        for table in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return [name for (name,) in cursor.fetchall()]


def quoted(table: str) -> str:
    return str(connection.ops.quote_name(table))


def deletions(tables: list[str]) -> list[str]:
    return [f"DELETE FROM {quoted(table)}" for table in tables]  # noqa: S608  # names of our tables


def postgres_statements(tables: list[str]) -> list[str]:
    """Delete in the replica role, which skips foreign keys and append-only triggers."""
    return ["SET LOCAL session_replication_role = replica", *deletions(tables)]


def sqlite_statements(tables: list[str]) -> list[str]:
    """Delete without triggers: append-only triggers are dropped and created again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
    dropped = [f"DROP TRIGGER {quoted(name)}" for name, _ in triggers]
    return [*dropped, *deletions(tables), *(sql for _, sql in triggers)]


STATEMENTS = {"postgresql": postgres_statements, "sqlite": sqlite_statements}
