"""How many rows each table has, and a digest over them: the same before and after means nothing was lost."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from django.db import connection

# Log-ins and passing notes: those who were logged out since must not be let in again by a restore.
EXCLUDED_TABLES = frozenset({"django_session", "usersessions_usersession", "project_cache"})
# Written by migrations, so that a database that holds only these is empty still.
MIGRATION_TABLES = frozenset({"django_migrations", "django_content_type", "auth_permission"})
CHUNK_SIZE = 1_000

TableChecksums = dict[str, list[Any]]


def list_tables() -> list[str]:
    """Tables of their own; the partitions of one are part of it."""
    return sorted(connection.introspection.table_names())


def list_backup_tables() -> list[str]:
    return [name for name in list_tables() if name not in EXCLUDED_TABLES]


def checksum_tables() -> TableChecksums:
    """By table: the number of rows, and the digest over them."""
    return {name: list(checksum_table(name)) for name in list_backup_tables()}


def checksum_table(table: str) -> tuple[int, str]:
    return (
        checksum_postgres_table(table) if connection.vendor == "postgresql" else checksum_sqlite_table(table)
    )


def checksum_postgres_table(table: str) -> tuple[int, str]:
    """A sum over the rows, so that their order does not matter: nothing promises one after a restore."""
    name = connection.ops.quote_name(table)
    row = "('x' || substr(md5(t::text), {}, 15))::bit(60)::bigint"
    sums = ", ".join(f"coalesce(sum({row.format(start)}), 0)" for start in (1, 16))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), {sums} FROM {name} t")  # noqa: S608  # a table of ours
        count, *parts = cursor.fetchone()
    return count, "-".join(f"{int(part):x}" for part in parts)


def checksum_sqlite_table(table: str) -> tuple[int, str]:
    whole, count = sha256(), 0
    for row in iterate_sqlite_rows(table):
        whole.update(repr(row).encode())
        count += 1
    return count, whole.hexdigest()


def iterate_sqlite_rows(table: str) -> Iterator[tuple[Any, ...]]:
    """As they are stored: the plus keeps Python from making times and truths of them."""
    name = connection.ops.quote_name(table)
    with connection.cursor() as cursor:
        columns = [one.name for one in connection.introspection.get_table_description(cursor, table)]
        chosen = ", ".join(f"+{connection.ops.quote_name(column)}" for column in columns)
        cursor.execute(f"SELECT {chosen} FROM {name} ORDER BY rowid")  # noqa: S608  # a table of ours
        while rows := cursor.fetchmany(CHUNK_SIZE):
            yield from rows


def find_filled_table() -> str | None:
    """A table with rows that no migration wrote; None while the database is empty."""
    for table in list_tables():
        if table not in EXCLUDED_TABLES | MIGRATION_TABLES and has_rows(table):
            return table
    return None


def has_rows(table: str) -> bool:
    with connection.cursor() as cursor:
        name = connection.ops.quote_name(table)
        cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {name})")  # noqa: S608  # a table of ours
        return bool(cursor.fetchone()[0])


def list_applied_migrations() -> list[list[str]]:
    """By app and name; none where there is no table for them yet."""
    if "django_migrations" not in list_tables():
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations ORDER BY app, name")
        return [list(row) for row in cursor.fetchall()]
