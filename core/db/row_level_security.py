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
# The policy of earlier releases, which a migration replaces.
OLD_POLICY_NAME = "workspace_wall"
OLD_POLICY_CONDITION = """
CASE (SELECT CASE current_setting('dramatis.workspace', true) WHEN 'all' THEN 0
ELSE nullif(current_setting('dramatis.workspace', true), '')::bigint END)
WHEN {column} THEN true WHEN 0 THEN true ELSE false END
"""
DROP_STATEMENTS = (
    f"DROP POLICY IF EXISTS {OLD_POLICY_NAME} ON {{table}}",
    f"DROP POLICY IF EXISTS {POLICY_NAME} ON {{table}}",
)
CREATE_STATEMENTS = (
    *DROP_STATEMENTS,
    "CREATE POLICY {policy} ON {table} USING ({condition}) WITH CHECK ({condition})",
)
ENABLE_STATEMENTS = (*CREATE_STATEMENTS, "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
DISABLE_STATEMENTS = ("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY", *DROP_STATEMENTS)


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
        self,
        schema_editor: BaseDatabaseSchemaEditor,
        statements: tuple[str, ...],
        policy: str = POLICY_NAME,
        condition: str = POLICY_CONDITION,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        placeholders = {
            "policy": policy,
            "table": self.table,
            "condition": condition.format(column=self.column),
        }
        with transaction.atomic(using=schema_editor.connection.alias):
            for statement in statements:
                schema_editor.execute(statement.format(**placeholders), params=None)

    def describe(self) -> str:
        return f"Enable row-level security on {self.table}"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"table": self.table, "column": self.column}


class ReplaceWorkspacePolicy(EnableRowLevelSecurity):
    """Replace the policy of a table by the current one. Backwards, restore the policy of earlier releases.

    No row is visible to a restricted role while a table has no policy, and both statements are in one
    transaction: other sessions see the old policy or the new one.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self.execute_statements(schema_editor, CREATE_STATEMENTS)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        self.execute_statements(schema_editor, CREATE_STATEMENTS, OLD_POLICY_NAME, OLD_POLICY_CONDITION)

    def describe(self) -> str:
        return f"Replace the policy of {self.table}"
