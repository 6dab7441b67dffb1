"""PostgreSQL without its programs: every table by COPY, of the moment that we hold; tables by migrations."""

import gzip
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from project.backup.checksums import list_backup_tables, list_tables
from prompts.ledger.partitions import (
    LedgerPartition,
    is_ledger_partitioned,
    list_partitions,
    restore_partitions,
)

DUMP_FORMAT, TABLES_FOLDER = "copy", "tables"
COLUMNS_SQL = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position
"""
SEQUENCES_SQL = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema()"
# Bit 32 of a trigger's kind: it is asked before the table is emptied.
TRUNCATE_TRIGGERS_SQL = """
SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgtype & 32 = 32
"""
BLOCK_SIZE = 256 * 1024


def dump_postgres_tables(folder: Path) -> dict[str, Any]:
    """Write the tables, and tell what is needed to read them back."""
    (folder / TABLES_FOLDER).mkdir()
    columns = {table: list_columns(table) for table in list_backup_tables()}
    with connection.cursor() as cursor:
        for table, names in columns.items():
            rows = f"COPY (SELECT {quote_names(names)} FROM {quote_name(table)}) TO STDOUT"  # noqa: S608  # ours
            with gzip.open(get_table_path(folder, table), "wb", 1) as file, cursor.copy(rows) as copied:
                for block in copied:
                    file.write(block)
        # After the rows: numbers are given outside of any moment, so these are beyond all that was written.
        cursor.execute(SEQUENCES_SQL)
        return {"columns": columns, "sequences": dict(cursor.fetchall()), "months": list_ledger_partitions()}


def list_ledger_partitions() -> list[list[str | None]]:
    """The parts of the ledger that have bounds, for the rows to lie in again."""
    return [
        [part.name, *(bound.isoformat() if bound else None for bound in (part.since, part.until))]
        for part in list_partitions()
        if not part.is_default
    ]


def list_columns(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS_SQL, [table])
        return [name for (name,) in cursor.fetchall()]


def get_table_path(folder: Path, table: str) -> Path:
    return folder / TABLES_FOLDER / f"{table}.copy.gz"


def quote_name(name: str) -> str:
    return str(connection.ops.quote_name(name))


def quote_names(names: list[str]) -> str:
    return ", ".join(quote_name(name) for name in names)


# --- putting back --------------------------------------------------------------------------------------


def load_postgres_tables(folder: Path, details: dict[str, Any], migrations: list[list[str]]) -> None:
    """Make the tables as they were, then fill them in one transaction: all of it, or nothing."""
    create_tables(migrations)
    columns: dict[str, list[str]] = details["columns"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        # What migrations wrote themselves stands in the backup too.
        cursor.execute(f"TRUNCATE {quote_names(list_truncatable_tables())}")
        if is_ledger_partitioned():
            restore_partitions(
                LedgerPartition(name, since=parse_bound(since), until=parse_bound(until))
                for name, since, until in details["months"]
            )
        for table, names in columns.items():
            with (
                gzip.open(get_table_path(folder, table), "rb") as file,
                cursor.copy(f"COPY {quote_name(table)} ({quote_names(names)}) FROM STDIN") as copied,
            ):
                shutil.copyfileobj(file, copied, BLOCK_SIZE)
        for name, value in details["sequences"].items():
            if value is not None:
                cursor.execute("SELECT setval(%s::regclass, %s)", [quote_name(name), value])


def list_truncatable_tables() -> list[str]:
    """All but those that refuse it; no migration writes to them, and nobody else has yet."""
    with connection.cursor() as cursor:
        cursor.execute(TRUNCATE_TRIGGERS_SQL)
        refusing = {name for (name,) in cursor.fetchall()}
    return [name for name in list_tables() if name not in refusing]


def parse_bound(said: str | None) -> datetime | None:
    return datetime.fromisoformat(said) if said else None


def create_tables(migrations: list[list[str]]) -> None:
    """As far as the backup had come, and no further: newer steps want the rows to be there."""
    wanted = {(app, name) for app, name in migrations}
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    known = [node for node in graph.nodes if node in wanted]
    ends = [node for node in known if not any(child in wanted for child in graph.node_map[node].children)]
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    executor.migrate(sorted(ends))
