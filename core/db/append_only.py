"""Migration operations for append-only tables: a trigger rejects every UPDATE and DELETE.

`AppendOnlyWithErasure` has one exception: if an erasure is recorded for the row, an UPDATE may replace its
text by a tombstone.
"""

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


# --- tables whose text can be erased ----------------------------------------------------------------------

# The first of three conditions for an UPDATE: an erasure of this record exists. The others are that the
# `kept` columns do not change and that the erasable columns become their tombstones.
ERASURE_CONDITION = """EXISTS (SELECT 1 FROM personas_erasure e WHERE e.workspace_id = OLD.workspace_id
  AND e.kind = OLD.kind AND e.object_id = OLD.object_id)"""
ERASABLE_POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION {table}_erasable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND {condition} AND {kept} AND {blanked} THEN RETURN NEW; END IF;
  RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END $$
"""
ERASABLE_POSTGRES_TRIGGER = """
CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_erasable()
"""
ERASABLE_SQLITE_TRIGGER = """
CREATE TRIGGER {table}_no_UPDATE BEFORE UPDATE ON {table}
WHEN NOT ({condition} AND {kept} AND {blanked})
BEGIN SELECT RAISE(ABORT, '{table} only grows: UPDATE is refused'); END
"""
TOMBSTONE = '{"erased": true}'


class AppendOnlyWithErasure(AppendOnly):
    """Like `AppendOnly`, but text can be erased.

    `kept` are the columns that may not change, `json_columns` the JSON columns to erase, and `text_columns`
    the text columns with the value each takes when it is erased.
    """

    def __init__(
        self, table: str, kept: list[str], json_columns: list[str], text_columns: dict[str, str]
    ) -> None:
        super().__init__(table)
        self.kept, self.json_columns, self.text_columns = kept, json_columns, text_columns

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        is_postgres = schema_editor.connection.vendor == "postgresql"
        kept = " AND ".join(
            f"NEW.{name} IS {'NOT DISTINCT FROM ' if is_postgres else ''}OLD.{name}" for name in self.kept
        )
        tombstone = f"'{TOMBSTONE}'::jsonb" if is_postgres else f"'{TOMBSTONE}'"
        blanked = [f"(NEW.{name} = {tombstone} OR NEW.{name} IS NULL)" for name in self.json_columns]
        blanked += [f"NEW.{name} = '{value}'" for name, value in self.text_columns.items()]
        placeholders = {
            "table": self.table,
            "condition": ERASURE_CONDITION,
            "kept": kept,
            "blanked": " AND ".join(blanked),
        }
        if is_postgres:
            schema_editor.execute(ERASABLE_POSTGRES_FUNCTION.format(**placeholders), params=None)
            schema_editor.execute(ERASABLE_POSTGRES_TRIGGER.format(**placeholders), params=None)
            return
        schema_editor.execute(ERASABLE_SQLITE_TRIGGER.format(**placeholders), params=None)
        schema_editor.execute(SQLITE_TRIGGER.format(table=self.table, verb="DELETE"), params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        super().database_backwards(app_label, schema_editor, from_state, to_state)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP FUNCTION {self.table}_erasable()")

    def describe(self) -> str:
        return f"Make {self.table} append-only, except for erasures"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        arguments = {
            "table": self.table,
            "kept": self.kept,
            "json_columns": self.json_columns,
            "text_columns": self.text_columns,
        }
        return self.__class__.__name__, [], arguments
