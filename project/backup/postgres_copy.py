"""Dump and restore PostgreSQL without pg_dump.

COPY dumps the rows from the open snapshot. For a restore, the migrations create the tables and COPY loads the
rows.
"""

import gzip
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from project.backup.checksums import list_backup_tables, list_tables
from prompts.evidence.ledger.partitions import (
    LedgerPartition,
    list_partitions,
    restore_partitions,
)

DUMP_FORMAT, TABLES_FOLDER = "copy", "tables"
COLUMNS_SQL = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position
"""
SEQUENCES_SQL = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema()"
# Bit 32 of tgtype marks a TRUNCATE trigger.
TRUNCATE_TRIGGERS_SQL = """
SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgtype & 32 = 32
"""
BLOCK_SIZE = 256 * 1024
# Triggers insert into these tables when rows of other tables are loaded. So these tables are loaded last.
TRIGGERED_TABLES = ("personas_erasurecounter",)


def dump_postgres_tables(folder: Path) -> dict[str, Any]:
    """Write the rows of each table to a file. Return columns, sequences and partitions for the restore."""
    (folder / TABLES_FOLDER).mkdir()
    columns = {table: list_columns(table) for table in list_backup_tables()}
    with connection.cursor() as cursor:
        for table, names in columns.items():
            rows = f"COPY (SELECT {quote_names(names)} FROM {quote_name(table)}) TO STDOUT"  # noqa: S608  # ours
            with gzip.open(get_table_path(folder, table), "wb", 1) as file, cursor.copy(rows) as copied:
                for block in copied:
                    file.write(block)
        # Read the sequences after the rows. Sequences are not part of the snapshot, so their values are at
        # least as high as the ids of the dumped rows.
        cursor.execute(SEQUENCES_SQL)
        return {"columns": columns, "sequences": dict(cursor.fetchall()), "months": list_ledger_partitions()}


def list_ledger_partitions() -> list[list[str | None]]:
    """Return name and bounds of the partitions of the ledger, except the default partition."""
    return [
        [
            partition.name,
            *(bound.isoformat() if bound else None for bound in (partition.since, partition.until)),
        ]
        for partition in list_partitions()
        if not partition.is_default
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


# --- restore -------------------------------------------------------------------------------------------


def load_postgres_tables(folder: Path, details: dict[str, Any], migrations: list[list[str]]) -> None:
    """Create the tables by migrations, then load the rows in one transaction."""
    create_tables(migrations)
    columns: dict[str, list[str]] = details["columns"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        # Delete the rows that migrations have inserted, because the backup contains them too.
        cursor.execute(f"TRUNCATE {quote_names(list_truncatable_tables())}")
        restore_partitions(
            LedgerPartition(name, since=parse_bound(since), until=parse_bound(until))
            for name, since, until in details["months"]
        )
        for table, names in sorted(columns.items(), key=lambda item: item[0] in TRIGGERED_TABLES):
            if table in TRIGGERED_TABLES:
                cursor.execute(f"DELETE FROM {quote_name(table)}")  # noqa: S608  # a table of ours
            with (
                gzip.open(get_table_path(folder, table), "rb") as file,
                cursor.copy(f"COPY {quote_name(table)} ({quote_names(names)}) FROM STDIN") as copied,
            ):
                shutil.copyfileobj(file, copied, BLOCK_SIZE)
        for name, value in details["sequences"].items():
            if value is not None:
                cursor.execute("SELECT setval(%s::regclass, %s)", [quote_name(name), value])


def list_truncatable_tables() -> list[str]:
    """Return all tables except those with a TRUNCATE trigger, into which no migration inserts rows."""
    with connection.cursor() as cursor:
        cursor.execute(TRUNCATE_TRIGGERS_SQL)
        protected = {name for (name,) in cursor.fetchall()}
    return [name for name in list_tables() if name not in protected]


def parse_bound(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def create_tables(migrations: list[list[str]]) -> None:
    """Apply the migrations that the backup lists. Newer migrations must run after the rows are loaded."""
    applied = {(app, name) for app, name in migrations}
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    known = [node for node in graph.nodes if node in applied]
    leaves = [node for node in known if not any(child in applied for child in graph.node_map[node].children)]
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    executor.migrate(sorted(leaves))
