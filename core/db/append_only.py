"""Migration operation for append-only tables: a trigger rejects every UPDATE and DELETE."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END $$
"""
POSTGRES_TRIGGER = """
CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION refuse_rewriting()
"""
SQLITE_TRIGGER = """
CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} only grows: {verb} is refused'); END
"""


class AppendOnly(Operation):
    """Add the triggers that make a table append-only.

    SQLite drops triggers when a later migration rebuilds the table, so that migration must repeat this
    operation.
    """

    reversible = True

    def __init__(self, table: str) -> None:
        self.table = table

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state unchanged."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(POSTGRES_FUNCTION, params=None)
            schema_editor.execute(POSTGRES_TRIGGER.format(table=self.table))
            return
        for command in ("UPDATE", "DELETE"):
            schema_editor.execute(SQLITE_TRIGGER.format(table=self.table, verb=command))

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP TRIGGER {self.table}_only_grows ON {self.table}")
            return
        for command in ("UPDATE", "DELETE"):
            schema_editor.execute(f"DROP TRIGGER {self.table}_no_{command}")

    def describe(self) -> str:
        return f"Make {self.table} append-only"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"table": self.table}
