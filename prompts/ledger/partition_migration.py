"""The migration step that lays the ledger out by month: no row is copied, and nobody waits for long."""

from typing import Any

from django.db import transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.utils import timezone

from prompts.ledger.partitions import (
    DEFAULT_PARTITION,
    LEDGER_TABLE,
    LEGACY_PARTITION,
    TRUNCATE_TRIGGER,
    add_months,
    get_month_start,
    is_ledger_partitioned,
    list_partitions,
)
from prompts.ledger.retention_trigger import AppendOnlyWithRetention

BOUND_CONSTRAINT, ID_AT_INDEX, ID_SEQUENCE = (
    f"{LEDGER_TABLE}_bound",
    f"{LEDGER_TABLE}_id_at",
    f"{LEDGER_TABLE}_id_seq",
)
# Rows are for this long at least written to the table that was there before.
MONTHS_AHEAD = 2
INDEXES_SQL = """
SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%s) AND i.indisvalid AND NOT i.indisunique ORDER BY c.relname
"""
PRIMARY_KEY_SQL = "SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(%s) AND contype = 'p'"
NEXT_ID_SQL = "SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM {sequence}"
# Whom the owner has let in; nought is everybody.
GRANTS_SQL = """
SELECT DISTINCT a.privilege_type, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass(%s) AND a.grantee <> c.relowner
"""
# The index of a part and that of the ledger which it belongs to.
INDEX_PAIRS_SQL = """
SELECT part.relname, whole.relname FROM pg_index i JOIN pg_class part ON part.oid = i.indexrelid
JOIN pg_inherits h ON h.inhrelid = part.oid JOIN pg_class whole ON whole.oid = h.inhparent
WHERE i.indrelid = to_regclass(%s) AND NOT i.indisprimary ORDER BY part.relname
"""


def build_truncate_trigger(table: str) -> str:
    return (
        f"CREATE TRIGGER {TRUNCATE_TRIGGER} BEFORE TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()"
    )


class PartitionByMonth(Operation):
    """The old table becomes the part for all that was before; SQLite keeps its one table.

    Begun again after a failure, it removes what was left. Backwards all rows come into one table again, and
    those of later parts are copied under a lock.
    """

    reversible = True
    atomic = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Django knows one table, whose key is its id: unique by its sequence."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql" or is_ledger_partitioned():
            return
        editor = LedgerSchemaEditor(schema_editor)
        until = editor.end_of_before()
        try:
            editor.prove(until)
            with transaction.atomic(using=schema_editor.connection.alias):
                editor.lay_out(until)
        except BaseException:
            # Left there, it would one day refuse rows.
            editor.run(f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT IF EXISTS {BOUND_CONSTRAINT}")
            raise

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql" and is_ledger_partitioned():
            with transaction.atomic(using=schema_editor.connection.alias):
                LedgerSchemaEditor(schema_editor).bring_together()

    def describe(self) -> str:
        return "Lay the ledger out by month"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {}


class LedgerSchemaEditor:
    """Says the statements, and asks what they depend on."""

    def __init__(self, schema_editor: BaseDatabaseSchemaEditor) -> None:
        self.schema_editor: Any = schema_editor

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.schema_editor.execute(statement, params=None)

    def ask(self, question: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.schema_editor.connection.cursor() as cursor:
            cursor.execute(question, values or None)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    # --- forwards ---------------------------------------------------------------------------------------

    def end_of_before(self) -> Any:
        """The start of the month after next, or what lies behind a row with a clock far ahead."""
        [(newest,)] = self.ask(f"SELECT max(at) FROM {LEDGER_TABLE}")  # noqa: S608  # our own name
        now = timezone.now()
        return max(add_months(get_month_start(now), MONTHS_AHEAD), add_months(get_month_start(newest or now)))

    def prove(self, until: Any) -> None:
        """While rows are written: that all are of before, and an index for the key of all parts."""
        self.run(
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT IF EXISTS {BOUND_CONSTRAINT}",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {BOUND_CONSTRAINT} "
            f"CHECK (at < '{until.isoformat()}') NOT VALID",
            f"ALTER TABLE {LEDGER_TABLE} VALIDATE CONSTRAINT {BOUND_CONSTRAINT}",
            f"DROP INDEX CONCURRENTLY IF EXISTS {ID_AT_INDEX}",
            f"CREATE UNIQUE INDEX CONCURRENTLY {ID_AT_INDEX} ON {LEDGER_TABLE} (id, at)",
        )

    def lay_out(self, until: Any) -> None:
        """Names and places change, under a lock; no row is read."""
        self.run(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE")
        indexes, grants = self.ask(INDEXES_SQL, LEDGER_TABLE), self.ask(GRANTS_SQL, LEDGER_TABLE)
        is_filled = bool(self.ask(f"SELECT 1 FROM {LEDGER_TABLE} LIMIT 1"))  # noqa: S608  # our own name
        following = self.set_aside(indexes)
        self.make_whole(following, indexes)
        if is_filled:
            self.run(
                build_truncate_trigger(LEGACY_PARTITION),
                f"ALTER TABLE {LEGACY_PARTITION} ENABLE ROW LEVEL SECURITY",
                f"ALTER TABLE {LEDGER_TABLE} ATTACH PARTITION {LEGACY_PARTITION} "
                f"FOR VALUES FROM (MINVALUE) TO ('{until.isoformat()}')",
                f"ALTER TABLE {LEGACY_PARTITION} DROP CONSTRAINT {BOUND_CONSTRAINT}",
            )
        else:
            self.run(f"DROP TABLE {LEGACY_PARTITION}")
        self.run(f"SELECT make_ledger_part('{DEFAULT_PARTITION}', NULL, NULL)")
        self.let_in(grants)

    def set_aside(self, indexes: list[tuple[Any, ...]]) -> int:
        """The old table under another name, with a key that a part can have; the next id."""
        [(primary,)] = self.ask(PRIMARY_KEY_SQL, LEDGER_TABLE)
        [(following,)] = self.ask(NEXT_ID_SQL.format(sequence=ID_SEQUENCE))
        self.run(
            f"DROP TRIGGER {LEDGER_TABLE}_only_grows ON {LEDGER_TABLE}",
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {primary}",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id DROP IDENTITY",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEGACY_PARTITION}_pkey "
            f"PRIMARY KEY USING INDEX {ID_AT_INDEX}",
            f"ALTER TABLE {LEDGER_TABLE} RENAME TO {LEGACY_PARTITION}",
            *(f"ALTER INDEX {name} RENAME TO {name}_before" for name, _ in indexes),
        )
        return int(following)

    def make_whole(self, following: int, indexes: list[tuple[Any, ...]]) -> None:
        """A table of the old one's shape without rows of its own; one sequence gives the ids of all parts."""
        self.run(
            f"CREATE TABLE {LEDGER_TABLE} (LIKE {LEGACY_PARTITION} INCLUDING DEFAULTS INCLUDING CONSTRAINTS "
            "INCLUDING STORAGE INCLUDING COMPRESSION INCLUDING COMMENTS) PARTITION BY RANGE (at)",
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {BOUND_CONSTRAINT}",
            f"CREATE SEQUENCE {ID_SEQUENCE} AS bigint START {following} OWNED BY {LEDGER_TABLE}.id",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id SET DEFAULT nextval('{ID_SEQUENCE}')",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEDGER_TABLE}_pkey PRIMARY KEY (id, at)",
            *(definition for _, definition in indexes),
            build_truncate_trigger(LEDGER_TABLE),
        )
        AppendOnlyWithRetention(LEDGER_TABLE).database_forwards("", self.schema_editor, None, None)

    def let_in(self, grants: list[tuple[Any, ...]]) -> None:
        """Whoever could use the old table can use this one; whoever writes takes a number."""
        for privilege, role in grants:
            self.run(f"GRANT {privilege} ON {LEDGER_TABLE} TO {role}")
            if privilege == "INSERT":
                self.run(f"GRANT USAGE ON SEQUENCE {ID_SEQUENCE} TO {role}")

    # --- backwards --------------------------------------------------------------------------------------

    def bring_together(self) -> None:
        """One part takes in the rows of the others, and is the ledger again."""
        self.run(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE")
        kept = (
            LEGACY_PARTITION
            if LEGACY_PARTITION in {part.name for part in list_partitions()}
            else DEFAULT_PARTITION
        )
        indexes, grants = self.ask(INDEX_PAIRS_SQL, kept), self.ask(GRANTS_SQL, LEDGER_TABLE)
        [(primary,)] = self.ask(PRIMARY_KEY_SQL, kept)
        [(following,)] = self.ask(NEXT_ID_SQL.format(sequence=ID_SEQUENCE))
        self.run(
            f"ALTER TABLE {LEDGER_TABLE} DETACH PARTITION {kept}",
            f"DROP TRIGGER {TRUNCATE_TRIGGER} ON {kept}",
            f"ALTER TABLE {kept} DISABLE ROW LEVEL SECURITY",
            f"INSERT INTO {kept} SELECT * FROM {LEDGER_TABLE} ORDER BY id",  # noqa: S608  # our own names
            f"ALTER TABLE {kept} ALTER COLUMN id DROP DEFAULT",
            f"DROP TABLE {LEDGER_TABLE}",
            f"ALTER TABLE {kept} RENAME TO {LEDGER_TABLE}",
            *(f"ALTER INDEX {name} RENAME TO {whole}" for name, whole in indexes),
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {primary}",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEDGER_TABLE}_pkey PRIMARY KEY (id)",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY "
            f"(SEQUENCE NAME {ID_SEQUENCE} START {following})",
            *(f"GRANT {privilege} ON {LEDGER_TABLE} TO {role}" for privilege, role in grants),
        )
        AppendOnlyWithRetention(LEDGER_TABLE).database_forwards("", self.schema_editor, None, None)
