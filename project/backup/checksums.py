"""Row count and checksum of each table: computed for a backup, and compared after its restore."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from django.db import connection

# Tables whose rows are not backed up: the cache, and sessions, because a restore must not revive a session
# that has ended since the backup.
EXCLUDED_TABLES = frozenset({"django_session", "usersessions_usersession", "project_cache"})
# Tables that migrations fill. If no other table has rows, the database counts as empty.
MIGRATION_TABLES = frozenset({"django_migrations", "django_content_type", "auth_permission"})
CHUNK_SIZE = 1_000

TableChecksums = dict[str, list[Any]]


def list_tables() -> list[str]:
    """Return all tables except partitions, whose rows are read through their parent table."""
    return sorted(connection.introspection.table_names())


def list_backup_tables() -> list[str]:
    return [name for name in list_tables() if name not in EXCLUDED_TABLES]


def checksum_tables() -> TableChecksums:
    """Return row count and checksum by table."""
    return {name: list(checksum_table(name)) for name in list_backup_tables()}


def checksum_table(table: str) -> tuple[int, str]:
    return (
        checksum_postgres_table(table) if connection.vendor == "postgresql" else checksum_sqlite_table(table)
    )


def checksum_postgres_table(table: str) -> tuple[int, str]:
    """Return row count and a sum of row hashes, which does not depend on the order of the rows."""
    name = connection.ops.quote_name(table)
    row = "('x' || substr(md5(t::text), {}, 15))::bit(60)::bigint"
    sums = ", ".join(f"coalesce(sum({row.format(start)}), 0)" for start in (1, 16))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), {sums} FROM {name} t")  # noqa: S608  # a table of ours
        count, *parts = cursor.fetchone()
    return count, "-".join(f"{int(part):x}" for part in parts)


def checksum_sqlite_table(table: str) -> tuple[int, str]:
    digest, count = sha256(), 0
    for row in iterate_sqlite_rows(table):
        digest.update(repr(row).encode())
        count += 1
    return count, digest.hexdigest()


def iterate_sqlite_rows(table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as they are stored.

    The unary plus turns each column into an expression, which the driver does not convert to datetime or
    bool.
    """
    name = connection.ops.quote_name(table)
    with connection.cursor() as cursor:
        columns = [column.name for column in connection.introspection.get_table_description(cursor, table)]
        expressions = ", ".join(f"+{connection.ops.quote_name(column)}" for column in columns)
        cursor.execute(f"SELECT {expressions} FROM {name} ORDER BY rowid")  # noqa: S608  # a table of ours
        while rows := cursor.fetchmany(CHUNK_SIZE):
            yield from rows


def find_filled_table() -> str | None:
    """Return a table with rows that no migration wrote, or None if the database is empty."""
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
    """Return app and name of each applied migration; an empty list if there are no tables yet."""
    if "django_migrations" not in list_tables():
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations ORDER BY app, name")
        return [list(row) for row in cursor.fetchall()]
