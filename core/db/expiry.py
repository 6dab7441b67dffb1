"""Migration operations for append-only tables: old rows, and rows of deleted workspaces, can be deleted."""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

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
    """Like `AppendOnly`, but rows whose time `at` is old enough can be deleted."""

    def __init__(self, table: str, days: int) -> None:
        super().__init__(table)
        self.days = days

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
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

    def describe(self) -> str:
        return f"Allow deletes from {self.table} only for rows older than {self.days} days"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"table": self.table, "days": self.days}


# --- deleted workspaces ----------------------------------------------------------------------------------

# The triggers of `AppendOnly` and its variants get one more exception: a DELETE is allowed if a removal of
# the workspace was recorded in personas_erasure more than `days` days ago.

# The kind of the row in personas_erasure that allows the removal.
REMOVAL_KIND = "removal"
POSTGRES_EXCEPTION = """
  IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM personas_erasure e
    WHERE e.workspace_id = OLD.workspace_id AND e.kind = '{kind}'
    AND e.at < now() - interval '{days} days') THEN RETURN OLD; END IF;"""
FUNCTIONS_SQL = """
SELECT DISTINCT p.proname, p.prosrc FROM pg_trigger t
JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relname = ANY(%s) AND c.relnamespace = current_schema()::regnamespace
AND t.tgname = c.relname || '_only_grows'
"""
# Django stores timestamps in SQLite as UTC text in this format, so comparing texts compares times.
SQLITE_EXCEPTION = """NOT EXISTS (SELECT 1 FROM personas_erasure e WHERE e.workspace_id = OLD.workspace_id
  AND e.kind = '{kind}' AND e.at < strftime('%Y-%m-%d %H:%M:%f', 'now', '-{days} days'))
"""
SQLITE_BODY = "BEGIN SELECT RAISE"


class AllowWorkspaceRemoval(Operation):
    """Add the exception for deleted workspaces to the DELETE triggers of these tables.

    SQLite drops triggers when a later migration rebuilds the table, so that migration must repeat this
    operation too.
    """

    reversible = True

    def __init__(self, tables: list[str], days: int) -> None:
        self.tables, self.days = tables, days

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state unchanged."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            exception = POSTGRES_EXCEPTION.format(kind=REMOVAL_KIND, days=self.days)
            for name, source in self.list_functions(schema_editor):
                replace_function(schema_editor, name, source.replace("BEGIN", f"BEGIN{exception}", 1))
            return
        condition = SQLITE_EXCEPTION.format(kind=REMOVAL_KIND, days=self.days)
        for name, statement in self.list_triggers(schema_editor):
            word = "AND" if "\nWHEN " in statement else "WHEN"
            replace_trigger(
                schema_editor, name, statement.replace(SQLITE_BODY, f"{word} {condition}{SQLITE_BODY}")
            )

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            exception = POSTGRES_EXCEPTION.format(kind=REMOVAL_KIND, days=self.days)
            for name, source in self.list_functions(schema_editor):
                replace_function(schema_editor, name, source.replace(exception, ""))
            return
        condition = SQLITE_EXCEPTION.format(kind=REMOVAL_KIND, days=self.days)
        for name, statement in self.list_triggers(schema_editor):
            before = statement.replace(f"AND {condition}", "").replace(f"WHEN {condition}", "")
            replace_trigger(schema_editor, name, before)

    def list_functions(self, schema_editor: BaseDatabaseSchemaEditor) -> list[tuple[str, str]]:
        """Return name and source of the trigger functions of the tables. Several tables can share one."""
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(FUNCTIONS_SQL, [self.tables])
            return list(cursor.fetchall())

    def list_triggers(self, schema_editor: BaseDatabaseSchemaEditor) -> list[tuple[str, str]]:
        names = [f"{table}_no_DELETE" for table in self.tables]
        marks = ", ".join(["%s"] * len(names))
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                f"SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name IN ({marks})",  # noqa: S608  # marks only
                names,
            )
            return list(cursor.fetchall())

    def describe(self) -> str:
        return f"Allow the removal of deleted workspaces from {len(self.tables)} append-only tables"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {"tables": self.tables, "days": self.days}


def replace_function(schema_editor: BaseDatabaseSchemaEditor, name: str, source: str) -> None:
    """Replace a function without a lock on the tables that use it."""
    head = f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql"
    schema_editor.execute(f"{head} AS $function${source}$function$", params=None)


def replace_trigger(schema_editor: BaseDatabaseSchemaEditor, name: str, statement: str) -> None:
    schema_editor.execute(f"DROP TRIGGER {name}", params=None)
    schema_editor.execute(statement, params=None)
