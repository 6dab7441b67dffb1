"""PostgreSQL functions that create and drop the ledger's monthly partitions.

The application may run as a database role that owns no tables. The functions that it calls are therefore
SECURITY DEFINER: they run with the rights of their owner. They let it change or delete no ledger row.
"""

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

# The fixed search_path prevents a caller from substituting its own tables. TimeZone and DateStyle are fixed
# so that partition bounds do not depend on the caller's session.
FUNCTION_HEADER = """LANGUAGE plpgsql {rights}
SET search_path = {schema}, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$"""
SECURITY_DEFINER, SECURITY_INVOKER = "SECURITY DEFINER", ""

# Creates a partition in these steps:
# - Create a separate table, to be attached last, so that rows of other months can be written meanwhile.
# - Create the TRUNCATE trigger: attached partitions inherit row triggers, but not this one.
# - Enable row-level security without a policy. Only the owner can then read the partition directly; other
#   roles read it through the ledger table.
# - Move rows of the month out of the default partition, which must contain none when the new partition is
#   attached. The triggers against changes are disabled for this; the ALTER TABLE lock keeps other sessions
#   from writing to the default partition until the transaction ends. The SQL says USER instead of naming the
#   triggers, because with Citus those of the default partition have other names on the workers.
MAKE_PART_SQL = """
CREATE OR REPLACE FUNCTION make_ledger_part(part text, since timestamptz, until timestamptz)
RETURNS void {head}
DECLARE
  bounds text := 'DEFAULT';
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE prompts_ledgerentry INCLUDING ALL)', part);
  EXECUTE format('CREATE TRIGGER prompts_ledgerentry_not_emptied BEFORE TRUNCATE ON %I '
    'FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()', part);
  EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
  IF since IS NOT NULL OR until IS NOT NULL THEN
    bounds := format('FOR VALUES FROM (%s) TO (%s)',
      coalesce(quote_literal(since), 'MINVALUE'), coalesce(quote_literal(until), 'MAXVALUE'));
    since := coalesce(since, '-infinity');
    until := coalesce(until, 'infinity');
    IF EXISTS (SELECT 1 FROM prompts_ledgerentry_default WHERE at >= since AND at < until) THEN
      ALTER TABLE prompts_ledgerentry_default DISABLE TRIGGER USER;
      EXECUTE format('WITH moved AS '
        '(DELETE FROM prompts_ledgerentry_default WHERE at >= $1 AND at < $2 RETURNING *) '
        'INSERT INTO %I SELECT * FROM moved ORDER BY id', part) USING since, until;
      ALTER TABLE prompts_ledgerentry_default ENABLE TRIGGER USER;
    END IF;
  END IF;
  EXECUTE format('ALTER TABLE prompts_ledgerentry ATTACH PARTITION %I %s', part, bounds);
END $$
"""
# Creates the partition of a month. Returns false if it exists already, or if the default partition has more
# than `few` rows of that month. The lock allows one creation at a time; it does not block reading or writing
# rows.
MAKE_MONTH_SQL = """
CREATE OR REPLACE FUNCTION make_ledger_month(month timestamptz, few integer) RETURNS boolean {head}
DECLARE
  since timestamptz := date_trunc('month', month, 'UTC');
  until timestamptz := (since AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC';
  part text := 'prompts_ledgerentry_' || to_char(since AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
  LOCK TABLE ONLY prompts_ledgerentry IN SHARE UPDATE EXCLUSIVE MODE;
  IF EXISTS (
    SELECT 1 FROM pg_inherits
    WHERE inhparent = 'prompts_ledgerentry'::regclass AND inhrelid = to_regclass(quote_ident(part))
  ) OR (CASE WHEN few IS NOT NULL THEN few < (
    SELECT count(*) FROM (
      SELECT 1 FROM prompts_ledgerentry_default WHERE at >= since AND at < until LIMIT few + 1
    ) waiting
  ) END) THEN
    RETURN false;
  END IF;
  PERFORM make_ledger_part(part, since, until);
  RETURN true;
END $$
"""
# Drops a partition if it is empty. The caller has checked that, but this checks it again under the lock: a
# row may have been written in between.
DROP_PART_SQL = """
CREATE OR REPLACE FUNCTION drop_ledger_part(part text) RETURNS boolean {head}
DECLARE
  is_filled boolean;
BEGIN
  LOCK TABLE ONLY prompts_ledgerentry IN ACCESS EXCLUSIVE MODE;
  IF part = 'prompts_ledgerentry_default' OR NOT EXISTS (
    SELECT 1 FROM pg_inherits
    WHERE inhparent = 'prompts_ledgerentry'::regclass AND inhrelid = to_regclass(quote_ident(part))
  ) THEN
    RETURN false;
  END IF;
  EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', part);
  EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', part) INTO is_filled;
  IF NOT is_filled THEN
    EXECUTE format('DROP TABLE %I', part);
  END IF;
  RETURN NOT is_filled;
END $$
"""
IS_PART_FILLED_SQL = """
CREATE OR REPLACE FUNCTION is_ledger_part_filled(part text) RETURNS boolean {head}
DECLARE
  is_filled boolean := true;
BEGIN
  IF EXISTS (
    SELECT 1 FROM pg_inherits
    WHERE inhparent = 'prompts_ledgerentry'::regclass AND inhrelid = to_regclass(quote_ident(part))
  ) THEN
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', part) INTO is_filled;
  END IF;
  RETURN is_filled;
END $$
"""
LOST_MONTHS_SQL = """
CREATE OR REPLACE FUNCTION lost_ledger_months(most integer) RETURNS SETOF timestamptz {head}
BEGIN
  RETURN QUERY SELECT DISTINCT date_trunc('month', at, 'UTC') FROM prompts_ledgerentry_default
    ORDER BY 1 LIMIT most;
END $$
"""
# Updates the planner statistics. Autovacuum analyzes partitions, but never the partitioned table itself.
ANALYZE_LEDGER_SQL = """
CREATE OR REPLACE FUNCTION count_ledger_rows() RETURNS void {head}
BEGIN
  ANALYZE prompts_ledgerentry;
END $$
"""
LEDGER_FUNCTIONS = {
    "make_ledger_part": (MAKE_PART_SQL, SECURITY_INVOKER),
    "make_ledger_month": (MAKE_MONTH_SQL, SECURITY_DEFINER),
    "drop_ledger_part": (DROP_PART_SQL, SECURITY_DEFINER),
    "is_ledger_part_filled": (IS_PART_FILLED_SQL, SECURITY_DEFINER),
    "lost_ledger_months": (LOST_MONTHS_SQL, SECURITY_DEFINER),
    "count_ledger_rows": (ANALYZE_LEDGER_SQL, SECURITY_DEFINER),
}


class CreateLedgerFunctions(Operation):
    """Migration operation that creates the partition functions. It changes no table."""

    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state unchanged."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT quote_ident(current_schema())")
            schema = cursor.fetchone()[0]
        for sql, rights in LEDGER_FUNCTIONS.values():
            head = FUNCTION_HEADER.format(rights=rights, schema=schema)
            schema_editor.execute(sql.replace("{head}", head), params=None)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            for name in reversed(LEDGER_FUNCTIONS):
                schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}")

    def describe(self) -> str:
        return "Create functions for monthly ledger partitions"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {}
