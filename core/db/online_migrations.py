"""Migration operations without downtime: on PostgreSQL they hold locks only briefly.

Each operation runs outside of a transaction, so its migration sets `atomic = False` and contains no other
operation. On SQLite, which allows one writer at a time anyway, they are the ordinary Django operations.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

from django.contrib.postgres.operations import NotInTransactionMixin
from django.db import transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddConstraint, AddIndex, RunPython
from django.db.migrations.operations.base import Operation
from django.db.models import UniqueConstraint

BATCH_SIZE = 1_000
PARTITIONS_WITHOUT_INDEX_SQL = """
SELECT part.oid, part.relname FROM pg_inherits i JOIN pg_class part ON part.oid = i.inhrelid
WHERE i.inhparent = to_regclass(%s) AND NOT EXISTS (
  SELECT FROM pg_index own JOIN pg_inherits whole ON whole.inhrelid = own.indexrelid
  WHERE own.indrelid = part.oid AND whole.inhparent = to_regclass(%s))
ORDER BY part.relname
"""


class OnlineOperation(NotInTransactionMixin, Operation):
    """Base of the operations that run `build` on PostgreSQL, outside of any transaction.

    Other databases run the ordinary Django operation.
    """

    atomic = False
    model_name: str

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        self._ensure_not_in_transaction(schema_editor)
        self.build(schema_editor, to_state.apps.get_model(app_label, self.model_name))

    def build(self, editor: Any, model: Any) -> None:
        raise NotImplementedError


class AddIndexOnline(OnlineOperation, AddIndex):
    """Add an index with CREATE INDEX CONCURRENTLY, after dropping the remains of an interrupted attempt."""

    def build(self, editor: Any, model: Any) -> None:
        if is_partitioned(editor, model._meta.db_table):
            self.build_by_partition(editor, model)
            return
        editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {editor.quote_name(self.index.name)}")
        editor.add_index(model, self.index, concurrently=True)

    def build_by_partition(self, editor: Any, model: Any) -> None:
        """Build the index for each partition, because CONCURRENTLY is not supported on partitioned tables.

        First an index is created on the parent table alone (ON ONLY). Partitions that are created meanwhile
        get this index too. It becomes valid when an index of every partition is attached to it.
        """
        table, name = model._meta.db_table, editor.quote_name(self.index.name)
        editor.execute(f"DROP INDEX IF EXISTS {name}")
        parent_statement = str(self.index.create_sql(model, editor))
        editor.execute(parent_statement.replace(" ON ", " ON ONLY ", 1), params=None)
        for oid, partition in list_partitions_without_index(editor, table, self.index.name):
            partition_index = editor.quote_name(f"{self.index.name}_{oid}")
            statement: Any = self.index.create_sql(model, editor, concurrently=True)
            statement.rename_table_references(table, partition)
            editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {partition_index}")
            editor.execute(str(statement).replace(name, partition_index, 1), params=None)
            editor.execute(f"ALTER INDEX {name} ATTACH PARTITION {partition_index}")

    def describe(self) -> str:
        return f"Create index {self.index.name} on {self.model_name} concurrently"


class AddUniqueOnline(OnlineOperation, AddConstraint):
    """Add a unique constraint from an index that was built with CREATE UNIQUE INDEX CONCURRENTLY.

    A constraint with a condition is only an index in PostgreSQL.
    """

    def build(self, editor: Any, model: Any) -> None:
        quote = editor.quote_name
        if cast("UniqueConstraint", self.constraint).condition is not None:
            statement = str(self.constraint.create_sql(model, editor))
            editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {quote(self.constraint.name)}")
            editor.execute(statement.replace("UNIQUE INDEX", "UNIQUE INDEX CONCURRENTLY", 1), params=None)
            return
        table, name = quote(model._meta.db_table), quote(self.constraint.name)
        fields = [model._meta.get_field(field) for field in cast("UniqueConstraint", self.constraint).fields]
        columns = ", ".join(quote(field.column) for field in fields)
        for statement in (
            f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}",
            f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
            f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} ({columns})",
            f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE USING INDEX {name}",
        ):
            editor.execute(statement)

    def describe(self) -> str:
        return f"Add constraint {self.constraint.name} to {self.model_name} using a prebuilt index"


class AddCheckOnline(OnlineOperation, AddConstraint):
    """Add a check constraint as NOT VALID, then validate the existing rows with VALIDATE CONSTRAINT.

    A NOT VALID constraint applies to new rows only and is added without a scan of the table. VALIDATE
    CONSTRAINT scans the table, but does not block reads or writes.
    """

    def build(self, editor: Any, model: Any) -> None:
        table = editor.quote_name(model._meta.db_table)
        name = editor.quote_name(self.constraint.name)
        editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        statement = self.constraint.create_sql(model, editor)
        editor.execute(f"{statement} NOT VALID", params=None)
        editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")

    def describe(self) -> str:
        return f"Add constraint {self.constraint.name} to {self.model_name} without blocking writes"


class RunInBatches(RunPython):
    """Data migration in batches, with one transaction per batch. Reversing it leaves the rows as they are.

    `waiting(apps, size)` returns up to `size` keys of rows that are not migrated yet. `change(apps, keys)`
    migrates these rows. A migration that was interrupted continues with the rows that are left.
    """

    def __init__(
        self,
        waiting: Callable[[Any, int], Iterable[Any]],
        change: Callable[[Any, list[Any]], None],
        *,
        size: int = BATCH_SIZE,
    ) -> None:
        self.waiting, self.change, self.size = waiting, change, size
        super().__init__(self.run_batches, RunPython.noop, atomic=False)

    def run_batches(self, apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
        alias = schema_editor.connection.alias
        while keys := list(self.waiting(apps, self.size)):
            with transaction.atomic(using=alias):
                self.change(apps, keys)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return (
            self.__class__.__name__,
            [],
            {"waiting": self.waiting, "change": self.change, "size": self.size},
        )

    def describe(self) -> str:
        return f"Update rows in batches of {self.size}"


# --- partitioned tables --------------------------------------------------------------------------------


def is_partitioned(editor: Any, table: str) -> bool:
    with editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_class WHERE oid = to_regclass(%s) AND relkind = 'p'", [table])
        return cursor.fetchone() is not None


def list_partitions_without_index(editor: Any, table: str, index: str) -> list[tuple[int, str]]:
    """Return oid and name of each partition that has no index attached to the parent's index."""
    with editor.connection.cursor() as cursor:
        cursor.execute(PARTITIONS_WITHOUT_INDEX_SQL, [table, index])
        partitions: list[tuple[int, str]] = cursor.fetchall()
        return partitions
