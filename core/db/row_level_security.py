"""Puts the second wall before a table: PostgreSQL itself shows only the rows of the workspace it was told."""

from typing import Any

from django.db import transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

POLICY_NAME = "workspace_wall"
# Read once per statement and table, since it stands in a SELECT of its own. A CASE, because the planner would
# take an OR for something rare and expect too few rows. Nothing told: nothing is seen. Nonsense: an error.
POLICY_CONDITION = """
CASE (SELECT CASE current_setting('dramatis.workspace', true) WHEN 'all' THEN 0
ELSE nullif(current_setting('dramatis.workspace', true), '')::bigint END)
WHEN {column} THEN true WHEN 0 THEN true ELSE false END
"""
ENABLE_STATEMENTS = (
    "DROP POLICY IF EXISTS {policy} ON {table}",
    "CREATE POLICY {policy} ON {table} USING ({condition}) WITH CHECK ({condition})",
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
)
DISABLE_STATEMENTS = (
    "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
    "DROP POLICY IF EXISTS {policy} ON {table}",
)


class EnableRowLevelSecurity(Operation):
    """A migration step for every table with a workspace. The owner of the table is not held by it.

    In a transaction of its own, so that a migration with `atomic = False` locks one table at a time, for as
    long as it takes to write into the catalogue. SQLite has no roles, and so no wall.
    """

    reversible = True

    def __init__(self, table: str, column: str = "workspace_id") -> None:
        self.table, self.column = table, column

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models stay as they are."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self.say(schema_editor, ENABLE_STATEMENTS)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self.say(schema_editor, DISABLE_STATEMENTS)

    def say(self, schema_editor: BaseDatabaseSchemaEditor, statements: tuple[str, ...]) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        words = {
            "policy": POLICY_NAME,
            "table": self.table,
            "condition": POLICY_CONDITION.format(column=self.column),
        }
        with transaction.atomic(using=schema_editor.connection.alias):
            for statement in statements:
                schema_editor.execute(statement.format(**words), params=None)

    def describe(self) -> str:
        return f"Show rows of {self.table} to their own workspace only"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"table": self.table, "column": self.column}
