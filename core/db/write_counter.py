"""Migration operation for a counter of the writes to a table, with one row per workspace."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

# ON CONFLICT locks the row of the workspace until the transaction ends. Concurrent writers are therefore
# counted in the order of their commits, and a reader that sees a number sees every write up to it.
COUNT_STATEMENT = """
INSERT INTO {counter} (workspace_id, number) VALUES (NEW.workspace_id, 1)
ON CONFLICT (workspace_id) DO UPDATE SET number = {counter}.number + 1
"""
POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION {table}_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN {statement}; RETURN NULL; END $$
"""
POSTGRES_TRIGGER = """
CREATE TRIGGER {table}_counted AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_count()
"""
SQLITE_TRIGGER = "CREATE TRIGGER {table}_counted_{verb} AFTER {verb} ON {table} BEGIN {statement}; END"
# Counts the rows that were written before the trigger existed.
INITIAL_STATEMENT = """
INSERT INTO {counter} (workspace_id, number) SELECT workspace_id, count(*) FROM {table} GROUP BY workspace_id
"""
VERBS = ("INSERT", "UPDATE")


class CountWrites(Operation):
    """Add triggers that count each INSERT and UPDATE of a table in the column `number` of another table.

    SQLite drops triggers when a later migration rebuilds the table, so that migration must repeat this
    operation.
    """

    reversible = True

    def __init__(self, table: str, counter: str) -> None:
        self.table, self.counter = table, counter

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state unchanged."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        names = {"table": self.table, "counter": self.counter}
        names["statement"] = COUNT_STATEMENT.format(**names).strip()
        schema_editor.execute(INITIAL_STATEMENT.format(**names), params=None)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(POSTGRES_FUNCTION.format(**names), params=None)
            schema_editor.execute(POSTGRES_TRIGGER.format(**names), params=None)
            return
        for verb in VERBS:
            schema_editor.execute(SQLITE_TRIGGER.format(verb=verb, **names), params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP TRIGGER {self.table}_counted ON {self.table}")
            schema_editor.execute(f"DROP FUNCTION {self.table}_count()")
        else:
            for verb in VERBS:
                schema_editor.execute(f"DROP TRIGGER {self.table}_counted_{verb}")

    def describe(self) -> str:
        return f"Count the writes to {self.table}"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"table": self.table, "counter": self.counter}
