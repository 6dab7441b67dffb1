"""Fetches inside a test's transaction: the ledger writer's own connection would not see uncommitted rows."""

import psycopg
from django.db import connection

from core.db.workspace_scope import all_workspaces
from prompts.serving.ledger_connection import FETCH_FUNCTION_SQL, NEXT_IDS_SQL
from prompts.serving.ledger_writer import LedgerWriter, PendingRow


def write_in_open_transactions() -> None:
    """Let the ledger writer use Django's connection while a test has a transaction open on it."""
    write = LedgerWriter.write

    def write_or_insert(self: LedgerWriter, row: PendingRow) -> int | None:
        return insert_in_transaction(row) if connection.in_atomic_block else write(self, row)

    LedgerWriter.write = write_or_insert  # type: ignore[method-assign]


def insert_in_transaction(row: PendingRow) -> int | None:
    with all_workspaces(), connection.cursor() as cursor:
        if has_fetch_function():
            cursor.execute(NEXT_IDS_SQL, [1])
            draft = f'[{{"id":{cursor.fetchone()[0]},{row.draft[1:]}]'
            cursor.execute(row.call_sql.replace("$1", "%s").replace("$2", "%s"), [row.workspace_id, draft])
        else:
            cursor.execute(row.sql, [f"[{row.draft}]"])
        return next((int(number) for number, _ in cursor.fetchall()), None)


def has_fetch_function() -> bool:
    if connection.vendor != "postgresql":
        return False
    # Not with a cursor of Django: tests count the statements of a fetch.
    return psycopg.ClientCursor(connection.connection).execute(FETCH_FUNCTION_SQL).fetchone() is not None
