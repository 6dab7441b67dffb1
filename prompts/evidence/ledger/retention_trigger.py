"""Triggers that make the ledger append-only, except that rows of expired blocks can be deleted.

The trigger checks for every row that its block has a LedgerExpiry record and that it is old enough.
"""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from core.db.append_only import AppendOnly

# Selects the last id of the only expired block that can contain row OLD. Blocks do not overlap, so this is
# the block with the highest first id that is not above OLD.id.
EXPIRED_ID_SQL = """
(SELECT r.last_id FROM prompts_ledgerexpiry r
 WHERE r.workspace_id = OLD.workspace_id AND r.first_id <= OLD.id ORDER BY r.first_id DESC LIMIT 1)
"""
POSTGRES_FUNCTION = f"""
CREATE OR REPLACE FUNCTION refuse_rewriting_unless_expired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD.at < now() - interval '6 months' AND OLD.id <= {EXPIRED_ID_SQL} THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END $$
"""
POSTGRES_TRIGGER = """
CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION refuse_rewriting_unless_expired()
"""
SQLITE_UPDATE_TRIGGER = """
CREATE TRIGGER {table}_no_UPDATE BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} only grows: UPDATE is refused'); END
"""
# Django stores timestamps in SQLite as UTC text in this format, so comparing texts compares times.
SQLITE_DELETE_TRIGGER = f"""
CREATE TRIGGER {{table}}_no_DELETE BEFORE DELETE ON {{table}}
WHEN NOT (
  OLD.at < strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-6 months') AND OLD.id <= IFNULL({EXPIRED_ID_SQL}, -1)
)
BEGIN SELECT RAISE(ABORT, '{{table}} only grows: DELETE is refused'); END
"""


class AppendOnlyWithRetention(AppendOnly):
    """Migration operation like `AppendOnly`, but rows of expired blocks can be deleted after six months.

    SQLite cannot rebuild the table prompts_ledgerexpiry while this trigger refers to it. A migration that
    changes that table must first reverse this operation.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(POSTGRES_FUNCTION, params=None)
            schema_editor.execute(POSTGRES_TRIGGER.format(table=self.table))
            return
        for trigger in (SQLITE_UPDATE_TRIGGER, SQLITE_DELETE_TRIGGER):
            schema_editor.execute(trigger.format(table=self.table))

    def describe(self) -> str:
        return f"Allow deletes from {self.table} only for expired rows"
