"""Migration operation for append-only tables whose old rows can be deleted."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from core.db.append_only import SQLITE_TRIGGER, AppendOnly

POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION {table}_expiring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD.at < now() - interval '{days} days' THEN RETURN OLD; END IF;
  RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END $$
"""
POSTGRES_TRIGGER = """
CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_expiring()
"""
# Django stores timestamps in SQLite as UTC text in this format, so comparing texts compares times.
SQLITE_DELETE_TRIGGER = """
CREATE TRIGGER {table}_no_DELETE BEFORE DELETE ON {table}
WHEN NOT OLD.at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-{days} days')
BEGIN SELECT RAISE(ABORT, '{table} only grows: DELETE is refused'); END
"""


class AppendOnlyWithExpiry(AppendOnly):
    """Replace the trigger of `AppendOnly` by one that allows deleting rows whose time `at` is old enough."""

    def __init__(self, table: str, days: int) -> None:
        super().__init__(table)
        self.days = days

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        super().database_backwards(app_label, schema_editor, from_state, to_state)
        names = {"table": self.table, "days": self.days}
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(POSTGRES_FUNCTION.format(**names), params=None)
            schema_editor.execute(POSTGRES_TRIGGER.format(**names), params=None)
            return
        schema_editor.execute(SQLITE_TRIGGER.format(table=self.table, verb="UPDATE"), params=None)
        schema_editor.execute(SQLITE_DELETE_TRIGGER.format(**names), params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        super().database_backwards(app_label, schema_editor, from_state, to_state)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP FUNCTION {self.table}_expiring()")
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Allow deletes from {self.table} only for rows older than {self.days} days"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"table": self.table, "days": self.days}
