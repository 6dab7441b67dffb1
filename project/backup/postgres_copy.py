"""PostgreSQL without its programs: every table by COPY, of the moment that we hold; tables by migrations."""

import gzip
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from project.backup.checksums import lasting_tables, table_names
from prompts.ledger.partitions import Part, is_by_month, lay_out, ledger_parts

FORM, FOLDER = "copy", "tables"
COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position
"""
SEQUENCES = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema()"
# Bit 32 of a trigger's kind: it is asked before the table is emptied.
REFUSING = """
SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgtype & 32 = 32
"""
BLOCK = 256 * 1024


def dump(folder: Path) -> dict[str, Any]:
    """Write the tables, and tell what is needed to read them back."""
    (folder / FOLDER).mkdir()
    columns = {table: columns_of(table) for table in lasting_tables()}
    with connection.cursor() as cursor:
        for table, names in columns.items():
            rows = f"COPY (SELECT {listed(names)} FROM {quoted(table)}) TO STDOUT"  # noqa: S608  # ours
            with gzip.open(path_of(folder, table), "wb", 1) as file, cursor.copy(rows) as copied:
                for block in copied:
                    file.write(block)
        # After the rows: numbers are given outside of any moment, so these are beyond all that was written.
        cursor.execute(SEQUENCES)
        return {"columns": columns, "sequences": dict(cursor.fetchall()), "months": months()}


def months() -> list[list[str | None]]:
    """The parts of the ledger that have bounds, for the rows to lie in again."""
    return [
        [part.name, *(bound.isoformat() if bound else None for bound in (part.since, part.until))]
        for part in ledger_parts()
        if not part.is_default
    ]


def columns_of(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, [table])
        return [name for (name,) in cursor.fetchall()]


def path_of(folder: Path, table: str) -> Path:
    return folder / FOLDER / f"{table}.copy.gz"


def quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))


def listed(names: list[str]) -> str:
    return ", ".join(quoted(name) for name in names)


# --- putting back --------------------------------------------------------------------------------------


def load(folder: Path, details: dict[str, Any], migrations: list[list[str]]) -> None:
    """Make the tables as they were, then fill them in one transaction: all of it, or nothing."""
    make_tables(migrations)
    columns: dict[str, list[str]] = details["columns"]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        # What migrations wrote themselves stands in the backup too.
        cursor.execute(f"TRUNCATE {listed(emptied_tables())}")
        if is_by_month():
            lay_out(
                Part(name, since=moment(since), until=moment(until))
                for name, since, until in details["months"]
            )
        for table, names in columns.items():
            with (
                gzip.open(path_of(folder, table), "rb") as file,
                cursor.copy(f"COPY {quoted(table)} ({listed(names)}) FROM STDIN") as copied,
            ):
                shutil.copyfileobj(file, copied, BLOCK)
        for name, value in details["sequences"].items():
            if value is not None:
                cursor.execute("SELECT setval(%s::regclass, %s)", [quoted(name), value])


def emptied_tables() -> list[str]:
    """All but those that refuse it; no migration writes to them, and nobody else has yet."""
    with connection.cursor() as cursor:
        cursor.execute(REFUSING)
        refusing = {name for (name,) in cursor.fetchall()}
    return [name for name in table_names() if name not in refusing]


def moment(said: str | None) -> datetime | None:
    return datetime.fromisoformat(said) if said else None


def make_tables(migrations: list[list[str]]) -> None:
    """As far as the backup had come, and no further: newer steps want the rows to be there."""
    wanted = {(app, name) for app, name in migrations}
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    known = [node for node in graph.nodes if node in wanted]
    ends = [node for node in known if not any(child in wanted for child in graph.node_map[node].children)]
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
    executor.migrate(sorted(ends))
