"""Migration operation for row-level security: PostgreSQL returns only rows of the current workspace."""

from typing import Any

from django.db import transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

POLICY_NAME = "workspace_isolation"
# The workspace scope is a PostgreSQL setting. CASE is used because with OR the planner underestimates the
# number of rows. The column is compared as text: a cast of the setting could fail, because it may be 'all'.
# There is no subquery, because Citus accepts none in policies. An unset scope matches no row.
POLICY_CONDITION = """
CASE current_setting('dramatis.workspace', true)
WHEN 'all' THEN true WHEN {column}::text THEN true ELSE false END
"""
ENABLE_STATEMENTS = (
    f"DROP POLICY IF EXISTS {POLICY_NAME} ON {{table}}",
    f"CREATE POLICY {POLICY_NAME} ON {{table}} USING ({{condition}}) WITH CHECK ({{condition}})",
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
)
DISABLE_STATEMENTS = (
    "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
    f"DROP POLICY IF EXISTS {POLICY_NAME} ON {{table}}",
)


class EnableRowLevelSecurity(Operation):
    """Enable row-level security on a table with a workspace column. It does not restrict the table's owner.

    The operation runs in its own transaction, so that a migration with `atomic = False` locks one table at a
    time, and each only briefly. SQLite has no row-level security, so the operation does nothing there.
    """

    reversible = True

    def __init__(self, table: str, column: str = "workspace_id") -> None:
        self.table, self.column = table, column

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state unchanged."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self.execute_statements(schema_editor, ENABLE_STATEMENTS)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self.execute_statements(schema_editor, DISABLE_STATEMENTS)

    def execute_statements(
        self, schema_editor: BaseDatabaseSchemaEditor, statements: tuple[str, ...]
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        placeholders = {"table": self.table, "condition": POLICY_CONDITION.format(column=self.column)}
        with transaction.atomic(using=schema_editor.connection.alias):
            for statement in statements:
                schema_editor.execute(statement.format(**placeholders), params=None)

    def describe(self) -> str:
        return f"Enable row-level security on {self.table}"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"table": self.table, "column": self.column}
