"""Migration operation for append-only tables whose text can be erased.

A trigger rejects every UPDATE and DELETE, with one exception: if an erasure is recorded for the row, an
UPDATE may replace its text by a tombstone.
"""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from core.db.append_only import SQLITE_TRIGGER, AppendOnly

# The first of three conditions for an UPDATE: an erasure of this record exists. The others are that the
# `kept` columns do not change and that the erasable columns become their tombstones.
ERASURE_CONDITION = """EXISTS (SELECT 1 FROM personas_erasure e WHERE e.workspace_id = OLD.workspace_id
  AND e.kind = OLD.kind AND e.object_id = OLD.object_id)"""
POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION {table}_erasable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND {condition} AND {kept} AND {blanked} THEN RETURN NEW; END IF;
  RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END $$
"""
POSTGRES_TRIGGER = """
CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_erasable()
"""
SQLITE_UPDATE_TRIGGER = """
CREATE TRIGGER {table}_no_UPDATE BEFORE UPDATE ON {table}
WHEN NOT ({condition} AND {kept} AND {blanked})
BEGIN SELECT RAISE(ABORT, '{table} only grows: UPDATE is refused'); END
"""
TOMBSTONE = '{"erased": true}'


class AppendOnlyWithErasure(AppendOnly):
    """Replace the trigger of `AppendOnly` by one that allows erasure.

    `kept` are the columns that may not change, `words` the JSON columns to erase, and `lines` the text
    columns with the value each takes when it is erased. The parameter names are part of existing migrations.
    """

    def __init__(self, table: str, kept: list[str], words: list[str], lines: dict[str, str]) -> None:
        super().__init__(table)
        self.kept, self.json_columns, self.text_columns = kept, words, lines

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        super().database_backwards(app_label, schema_editor, from_state, to_state)
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
            schema_editor.execute(POSTGRES_FUNCTION.format(**placeholders), params=None)
            schema_editor.execute(POSTGRES_TRIGGER.format(**placeholders), params=None)
            return
        schema_editor.execute(SQLITE_UPDATE_TRIGGER.format(**placeholders), params=None)
        schema_editor.execute(SQLITE_TRIGGER.format(table=self.table, verb="DELETE"), params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        super().database_backwards(app_label, schema_editor, from_state, to_state)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP FUNCTION {self.table}_erasable()")
        AppendOnly(self.table).database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Make {self.table} append-only, except for erasures"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        arguments = {
            "table": self.table,
            "kept": self.kept,
            "words": self.json_columns,
            "lines": self.text_columns,
        }
        return self.__class__.__name__, [], arguments
