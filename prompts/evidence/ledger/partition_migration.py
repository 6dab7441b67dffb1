"""Migration operation that partitions the ledger by month."""

from typing import Any

from django.db import transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

from prompts.evidence.ledger.partitions import (
    DEFAULT_PARTITION,
    LEDGER_TABLE,
    TRUNCATE_TRIGGER,
    is_ledger_partitioned,
)
from prompts.evidence.ledger.retention_trigger import AppendOnlyWithRetention

UNPARTITIONED_TABLE, ID_SEQUENCE = f"{LEDGER_TABLE}_before", f"{LEDGER_TABLE}_id_seq"
INDEXES_SQL = """
SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%s) AND NOT i.indisprimary ORDER BY c.relname
"""
PRIMARY_KEY_SQL = "SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(%s) AND contype = 'p'"
NEXT_ID_SQL = f"SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END FROM {ID_SEQUENCE}"  # noqa: S608  # our own name
# Privileges that roles other than the owner have on a table. Grantee 0 is PUBLIC.
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


class PartitionByMonth(Operation):
    """Migration operation that partitions the ledger by month. SQLite keeps a single table.

    The table is replaced by a partitioned one. It has rows only if the operation was reversed before: they
    are then copied into the default partition, and `create_partitions` moves them. Reversing copies the rows
    of all partitions into one table. Both lock the ledger meanwhile.
    """

    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the model state unchanged: for Django the ledger is still one table with unique ids."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql" and not is_ledger_partitioned():
            with transaction.atomic(using=schema_editor.connection.alias):
                LedgerSchemaEditor(schema_editor).create_partitioned_table()

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

    def create_partitioned_table(self) -> None:
        """Replace the table by a partitioned table with its columns, indexes, privileges and rows.

        One sequence generates the ids of all partitions, so that ids stay unique. The primary key of a
        partitioned table must contain the partition column `at`.
        """
        self.run(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE")
        indexes, grants = self.query(INDEXES_SQL, LEDGER_TABLE), self.query(GRANTS_SQL, LEDGER_TABLE)
        [(primary_key,)] = self.query(PRIMARY_KEY_SQL, LEDGER_TABLE)
        [(next_id,)] = self.query(NEXT_ID_SQL)
        self.run(
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {primary_key}",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id DROP IDENTITY",
            *(f"DROP INDEX {name}" for name, _ in indexes),
            f"ALTER TABLE {LEDGER_TABLE} RENAME TO {UNPARTITIONED_TABLE}",
            f"CREATE TABLE {LEDGER_TABLE} (LIKE {UNPARTITIONED_TABLE} INCLUDING DEFAULTS "
            "INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMPRESSION INCLUDING COMMENTS) "
            "PARTITION BY RANGE (at)",
            f"CREATE SEQUENCE {ID_SEQUENCE} AS bigint START {next_id} OWNED BY {LEDGER_TABLE}.id",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id SET DEFAULT nextval('{ID_SEQUENCE}')",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEDGER_TABLE}_pkey PRIMARY KEY (id, at)",
            *(definition for _, definition in indexes),
            f"CREATE TRIGGER {TRUNCATE_TRIGGER} BEFORE TRUNCATE ON {LEDGER_TABLE} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting()",
        )
        self.create_append_only_trigger()
        self.run(
            f"SELECT make_ledger_part('{DEFAULT_PARTITION}', NULL, NULL)",
            f"INSERT INTO {LEDGER_TABLE} SELECT * FROM {UNPARTITIONED_TABLE} ORDER BY id",  # noqa: S608  # our own names
            f"DROP TABLE {UNPARTITIONED_TABLE}",
        )
        for privilege, role in grants:
            self.run(f"GRANT {privilege} ON {LEDGER_TABLE} TO {role}")
            # Roles that may insert also need the id sequence.
            if privilege == "INSERT":
                self.run(f"GRANT USAGE ON SEQUENCE {ID_SEQUENCE} TO {role}")

    def merge_partitions(self) -> None:
        """Copy the rows of all partitions into the default partition, which becomes the ledger table."""
        self.run(f"LOCK TABLE {LEDGER_TABLE} IN ACCESS EXCLUSIVE MODE")
        indexes = self.query(INDEX_PAIRS_SQL, DEFAULT_PARTITION)
        grants = self.query(GRANTS_SQL, LEDGER_TABLE)
        [(primary_key,)] = self.query(PRIMARY_KEY_SQL, DEFAULT_PARTITION)
        [(next_id,)] = self.query(NEXT_ID_SQL)
        self.run(
            f"ALTER TABLE {LEDGER_TABLE} DETACH PARTITION {DEFAULT_PARTITION}",
            f"DROP TRIGGER {TRUNCATE_TRIGGER} ON {DEFAULT_PARTITION}",
            f"ALTER TABLE {DEFAULT_PARTITION} DISABLE ROW LEVEL SECURITY",
            f"INSERT INTO {DEFAULT_PARTITION} SELECT * FROM {LEDGER_TABLE} ORDER BY id",  # noqa: S608  # our own names
            f"ALTER TABLE {DEFAULT_PARTITION} ALTER COLUMN id DROP DEFAULT",
            f"DROP TABLE {LEDGER_TABLE}",
            f"ALTER TABLE {DEFAULT_PARTITION} RENAME TO {LEDGER_TABLE}",
            *(f"ALTER INDEX {name} RENAME TO {parent}" for name, parent in indexes),
            f"ALTER TABLE {LEDGER_TABLE} DROP CONSTRAINT {primary_key}",
            f"ALTER TABLE {LEDGER_TABLE} ADD CONSTRAINT {LEDGER_TABLE}_pkey PRIMARY KEY (id)",
            f"ALTER TABLE {LEDGER_TABLE} ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY "
            f"(SEQUENCE NAME {ID_SEQUENCE} START {next_id})",
            *(f"GRANT {privilege} ON {LEDGER_TABLE} TO {role}" for privilege, role in grants),
        )
        self.create_append_only_trigger()

    def create_append_only_trigger(self) -> None:
        AppendOnlyWithRetention(LEDGER_TABLE).database_forwards("", self.schema_editor, None, None)
