"""Find statements on tenant tables that name no workspace.

A table that is distributed by workspace is asked on all nodes if a statement does not say which workspace it
concerns, and two such tables can be joined only by workspace. The SQL is read with regular expressions: for
each table there must be a condition that compares its workspace with a value, directly or along joins.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.apps import apps
from django.db import connection

from core.shared_cache import SharedLRUCache
from personas.models import WorkspaceOwned

NAME = r'"?(\w+)"?'
# Words that follow a table without an alias.
KEYWORDS = (
    "AND|CROSS|DEFAULT|FOR|GROUP|HAVING|INNER|JOIN|LEFT|LIMIT|OFFSET|ON|ORDER|RETURNING|SELECT|SET|UNION|USING"
    "|VALUES|WHERE"
)
# A table with its alias, if any.
REFERENCE = re.compile(
    rf"\b(?:FROM|JOIN|UPDATE|INTO)\s+(?:ONLY\s+)?{NAME}(?:\s+(?:AS\s+)?(?!(?:{KEYWORDS})\b){NAME})?",
    re.IGNORECASE,
)
COLUMN = r'"?(\w+)"?\."?workspace_id"?'
EQUAL_COLUMNS = re.compile(rf"{COLUMN}\s*=\s*\(?{COLUMN}")
VALUE = r"(?:%s|\$\d+|\d+|\(%s|\(SELECT)"
EQUAL_VALUE = re.compile(rf"{COLUMN}\s*(?:=|IN)\s*\(?{VALUE}")
BARE_VALUE = re.compile(rf'(?<![.\w"])"?workspace_id"?\s*(?:=|IN)\s*\(?{VALUE}')
INSERTED = re.compile(r'INSERT INTO "?(\w+)"? \(([^)]*)\)')
SET_WORKSPACE = re.compile(
    r'\bSET\b(?:(?!\bWHERE\b).)*?(?<!\.)"workspace_id"\s*=\s*(?:%s|EXCLUDED|\d)', re.DOTALL
)

# Statements that are sent before the workspace is known: tables with the column of their condition.
EXEMPT_LOOKUPS = {
    "personas_apikey": "digest",
    "personas_membership": "user_id",
    "personas_invitation": "nonce",
}
# The statement of a fetch, which joins the rows of each key. Its drafts may be of several workspaces.
FETCH_STATEMENT = "INSERT INTO prompts_ledgerentry"


def list_tenant_tables() -> set[str]:
    return {model._meta.db_table for model in apps.get_models() if issubclass(model, WorkspaceOwned)}


def find_unnamed_tables(sql: str, tables: set[str]) -> list[str]:
    """Return the tenant tables in a statement whose workspace is not compared with a value."""
    if FETCH_STATEMENT in sql or sql.lstrip().upper().startswith(
        ("SAVEPOINT", "RELEASE", "ROLLBACK", "SET ", "ALTER", "LOCK", "TRUNCATE")
    ):
        return []
    references = [(table, alias or table) for table, alias in REFERENCE.findall(sql) if table in tables]
    if SET_WORKSPACE.search(sql):
        return [f"{table} (its workspace is set)" for table, _ in references]
    inserted = {table for table, columns in INSERTED.findall(sql) if "workspace_id" in columns}
    named = {*EQUAL_VALUE.findall(sql), *(alias for table, alias in references if is_exempt(sql, table))}
    pairs = EQUAL_COLUMNS.findall(sql)
    while more := {name for pair in pairs if named & set(pair) for name in pair if name not in named}:
        named |= more
    if BARE_VALUE.search(sql) and len(references) == 1:
        return []
    return [table for table, alias in references if alias not in named and table not in inserted]


def is_exempt(sql: str, table: str) -> bool:
    column = EXEMPT_LOOKUPS.get(table)
    return column is not None and f'{column}" = %s' in sql.rpartition("WHERE")[2]


@contextmanager
def found_statements() -> Iterator[dict[str, str]]:
    """Collect the statements that name no workspace, with the tables for which it is missing."""
    tables, findings = list_tenant_tables(), dict[str, str]()
    checked: set[str] = set()

    def check(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql not in checked:
            checked.add(sql)
            if unnamed := find_unnamed_tables(sql, tables):
                findings[sql] = ", ".join(sorted(set(unnamed)))
        return execute(sql, params, many, context)

    # Compiled SQL is neither read from the caches nor left in them: a test that plants a fault in the joins
    # would leave faulty SQL for the tests after it.
    uncached = patch.multiple(SharedLRUCache, find=lambda *_: None, store=lambda *_: None)
    with uncached, connection.execute_wrapper(check):
        yield findings
