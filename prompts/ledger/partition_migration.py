"""Migration operation that partitions the ledger by month, without copying rows and with a short lock."""

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
# The legacy partition, which is the old table, ends this many months after the start of the current month.
MONTHS_AHEAD = 2
INDEXES_SQL = """
SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%s) AND i.indisvalid AND NOT i.indisunique ORDER BY c.relname
"""
PRIMARY_KEY_SQL = "SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(%s) AND contype = 'p'"
NEXT_ID_SQL = "SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM {sequence}"
# Privileges on a table that roles other than its owner have. Grantee 0 is PUBLIC.
GRANTS_SQL = """
SELECT DISTINCT a.privilege_type, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass(%s) AND a.grantee <> c.relowner
"""
# Name of each index of a partition, and of the ledger's index that it belongs to.
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
    """Migration operation that partitions the ledger by month. SQLite keeps a single table.

    The old table becomes the legacy partition, with all existing rows. If the operation fails, it can be run
    again: it first removes what the failed attempt left. Reversing it copies the rows of all other partitions
    into the legacy partition, which becomes the table again; the ledger is locked meanwhile.
    """

    reversible = True
    atomic = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state unchanged: for Django the ledger is still one table with unique ids."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql" or is_ledger_partitioned():
            return
        editor = LedgerSchemaEditor(schema_editor)
        until = editor.get_legacy_end()
        try:
            editor.prepare_table(until)
            with transaction.atomic(using=schema_editor.connection.alias):
                editor.convert_table(until)
        except BaseException:
            # If the constraint remained, it would reject all rows from `until` on.
            editor.run(f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT IF EXISTS {BOUND_CONSTRAINT}")
            raise

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql" and is_ledger_partitioned():
            with transaction.atomic(using=schema_editor.connection.alias):
                LedgerSchemaEditor(schema_editor).merge_partitions()

    def describe(self) -> str:
        return "Partition the ledger by month"

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [], {}


class LedgerSchemaEditor:
    """The schema changes of the operation PartitionByMonth, and the queries that they depend on."""

    def __init__(self, schema_editor: BaseDatabaseSchemaEditor) -> None:
        self.schema_editor: Any = schema_editor

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.schema_editor.execute(statement, params=None)

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.schema_editor.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    # --- forwards ---------------------------------------------------------------------------------------

    def get_legacy_end(self) -> Any:
        """Return the end of the legacy partition.

        It is the start of the month after next, or of the month after the newest row if that is later.
        """
        [(newest,)] = self.query(f"SELECT max(at) FROM {LEDGER_TABLE}")  # noqa: S608  # our own name
        now = timezone.now()
        return max(add_months(get_month_start(now), MONTHS_AHEAD), add_months(get_month_start(newest or now)))

    def prepare_table(self, until: Any) -> None:
        """Add a constraint for the partition bound, and build the index of the new primary key.

        Rows can be written meanwhile. With a validated constraint, attaching the partition reads no rows.
        """
        self.run(
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT IF EXISTS {BOUND_CONSTRAINT}",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {BOUND_CONSTRAINT} "
            f"CHECK (at < '{until.isoformat()}') NOT VALID",
            f"ALTER TABLE {LEDGER_TABLE} VALIDATE CONSTRAINT {BOUND_CONSTRAINT}",
            f"DROP INDEX CONCURRENTLY IF EXISTS {ID_AT_INDEX}",
            f"CREATE UNIQUE INDEX CONCURRENTLY {ID_AT_INDEX} ON {LEDGER_TABLE} (id, at)",
        )

    def convert_table(self, until: Any) -> None:
        """Replace the table by a partitioned table, with the old table as its legacy partition.

        This takes an exclusive lock, but only briefly, because rows are neither scanned nor copied.
        """
        self.run(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE")
        indexes, grants = self.query(INDEXES_SQL, LEDGER_TABLE), self.query(GRANTS_SQL, LEDGER_TABLE)
        is_filled = bool(self.query(f"SELECT 1 FROM {LEDGER_TABLE} LIMIT 1"))  # noqa: S608  # our own name
        next_id = self.rename_legacy_table(indexes)
        self.create_partitioned_table(next_id, indexes)
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
        self.restore_grants(grants)

    def rename_legacy_table(self, indexes: list[tuple[Any, ...]]) -> int:
        """Rename the old table, and change its primary key from (id) to (id, at). Return the next id.

        A primary key of a partitioned table must contain the partition column `at`.
        """
        [(primary_key,)] = self.query(PRIMARY_KEY_SQL, LEDGER_TABLE)
        [(next_id,)] = self.query(NEXT_ID_SQL.format(sequence=ID_SEQUENCE))
        self.run(
            f"DROP TRIGGER {LEDGER_TABLE}_only_grows ON {LEDGER_TABLE}",
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {primary_key}",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id DROP IDENTITY",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEGACY_PARTITION}_pkey "
            f"PRIMARY KEY USING INDEX {ID_AT_INDEX}",
            f"ALTER TABLE {LEDGER_TABLE} RENAME TO {LEGACY_PARTITION}",
            *(f"ALTER INDEX {name} RENAME TO {name}_before" for name, _ in indexes),
        )
        return int(next_id)

    def create_partitioned_table(self, next_id: int, indexes: list[tuple[Any, ...]]) -> None:
        """Create the partitioned table with the columns and indexes of the old one.

        One sequence generates the ids of all partitions, so that ids stay unique.
        """
        self.run(
            f"CREATE TABLE {LEDGER_TABLE} (LIKE {LEGACY_PARTITION} INCLUDING DEFAULTS INCLUDING CONSTRAINTS "
            "INCLUDING STORAGE INCLUDING COMPRESSION INCLUDING COMMENTS) PARTITION BY RANGE (at)",
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {BOUND_CONSTRAINT}",
            f"CREATE SEQUENCE {ID_SEQUENCE} AS bigint START {next_id} OWNED BY {LEDGER_TABLE}.id",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id SET DEFAULT nextval('{ID_SEQUENCE}')",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEDGER_TABLE}_pkey PRIMARY KEY (id, at)",
            *(definition for _, definition in indexes),
            build_truncate_trigger(LEDGER_TABLE),
        )
        AppendOnlyWithRetention(LEDGER_TABLE).database_forwards("", self.schema_editor, None, None)

    def restore_grants(self, grants: list[tuple[Any, ...]]) -> None:
        """Grant the privileges of the old table. Roles that may insert also need the id sequence."""
        for privilege, role in grants:
            self.run(f"GRANT {privilege} ON {LEDGER_TABLE} TO {role}")
            if privilege == "INSERT":
                self.run(f"GRANT USAGE ON SEQUENCE {ID_SEQUENCE} TO {role}")

    # --- backwards --------------------------------------------------------------------------------------

    def merge_partitions(self) -> None:
        """Copy the rows of all other partitions into one partition, which becomes the ledger table.

        That is the legacy partition, or the default partition if there is no legacy partition.
        """
        self.run(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE")
        kept = (
            LEGACY_PARTITION
            if LEGACY_PARTITION in {partition.name for partition in list_partitions()}
            else DEFAULT_PARTITION
        )
        indexes, grants = self.query(INDEX_PAIRS_SQL, kept), self.query(GRANTS_SQL, LEDGER_TABLE)
        [(primary_key,)] = self.query(PRIMARY_KEY_SQL, kept)
        [(next_id,)] = self.query(NEXT_ID_SQL.format(sequence=ID_SEQUENCE))
        self.run(
            f"ALTER TABLE {LEDGER_TABLE} DETACH PARTITION {kept}",
            f"DROP TRIGGER {TRUNCATE_TRIGGER} ON {kept}",
            f"ALTER TABLE {kept} DISABLE ROW LEVEL SECURITY",
            f"INSERT INTO {kept} SELECT * FROM {LEDGER_TABLE} ORDER BY id",  # noqa: S608  # our own names
            f"ALTER TABLE {kept} ALTER COLUMN id DROP DEFAULT",
            f"DROP TABLE {LEDGER_TABLE}",
            f"ALTER TABLE {kept} RENAME TO {LEDGER_TABLE}",
            *(f"ALTER INDEX {name} RENAME TO {parent}" for name, parent in indexes),
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {primary_key}",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEDGER_TABLE}_pkey PRIMARY KEY (id)",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY "
            f"(SEQUENCE NAME {ID_SEQUENCE} START {next_id})",
            *(f"GRANT {privilege} ON {LEDGER_TABLE} TO {role}" for privilege, role in grants),
        )
        AppendOnlyWithRetention(LEDGER_TABLE).database_forwards("", self.schema_editor, None, None)
