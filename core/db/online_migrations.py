"""Migration steps that keep the product running: on PostgreSQL they hold no lock for long.

Each works outside of a transaction, so its migration says `atomic = False` and does nothing else. On SQLite,
which has one writer at a time anyway, they are the plain steps.
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
    """A step that PostgreSQL takes in its own way, outside of any transaction; other databases as ever."""

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
    """An index built while rows are written; what an attempt that was cut off left is removed first."""

    def build(self, editor: Any, model: Any) -> None:
        if is_partitioned(editor, model._meta.db_table):
            self.build_by_parts(editor, model)
            return
        editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {editor.quote_name(self.index.name)}")
        editor.add_index(model, self.index, concurrently=True)

    def build_by_parts(self, editor: Any, model: Any) -> None:
        """For each part by itself: for a whole table of parts PostgreSQL builds none while it is written to.

        Parts that come meanwhile have theirs from the first statement; when all have, it counts as built.
        """
        table, name = model._meta.db_table, editor.quote_name(self.index.name)
        editor.execute(f"DROP INDEX IF EXISTS {name}")
        said = str(self.index.create_sql(model, editor))
        editor.execute(said.replace(" ON ", " ON ONLY ", 1), params=None)
        for number, part in list_partitions_without_index(editor, table, self.index.name):
            own = editor.quote_name(f"{self.index.name}_{number}")
            built: Any = self.index.create_sql(model, editor, concurrently=True)
            built.rename_table_references(table, part)
            editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {own}")
            editor.execute(str(built).replace(name, own, 1), params=None)
            editor.execute(f"ALTER INDEX {name} ATTACH PARTITION {own}")

    def describe(self) -> str:
        return f"Build index {self.index.name} on {self.model_name} while it is written to"


class AddUniqueOnline(OnlineOperation, AddConstraint):
    """A uniqueness whose index is built while rows are written; then the constraint is made from it."""

    def build(self, editor: Any, model: Any) -> None:
        quote = editor.quote_name
        table, name = quote(model._meta.db_table), quote(self.constraint.name)
        fields = [model._meta.get_field(field) for field in cast("UniqueConstraint", self.constraint).fields]
        columns = ", ".join(quote(field.column) for field in fields)
        for step in (
            f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}",
            f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
            f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} ({columns})",
            f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE USING INDEX {name}",
        ):
            editor.execute(step)

    def describe(self) -> str:
        return f"Let {self.constraint.name} hold on {self.model_name}, its index built first"


class AddCheckOnline(OnlineOperation, AddConstraint):
    """A check that holds for new rows at once, and is then proved for old ones while nobody waits."""

    def build(self, editor: Any, model: Any) -> None:
        table = editor.quote_name(model._meta.db_table)
        name = editor.quote_name(self.constraint.name)
        editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        said = self.constraint.create_sql(model, editor)
        editor.execute(f"{said} NOT VALID", params=None)
        editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")

    def describe(self) -> str:
        return f"Let {self.constraint.name} hold on {self.model_name}, for new rows first"


class RunInBatches(RunPython):
    """Changes rows in portions, each in a transaction of its own; begun again, it goes on where it was.

    `waiting` gives the keys of rows still to be changed, at most as many as asked for; `change` changes them.
    """

    def __init__(
        self,
        waiting: Callable[[Any, int], Iterable[Any]],
        change: Callable[[Any, list[Any]], None],
        *,
        size: int = BATCH_SIZE,
    ) -> None:
        self.waiting, self.change, self.size = waiting, change, size
        super().__init__(self.walk, RunPython.noop, atomic=False)

    def walk(self, apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
        alias = schema_editor.connection.alias
        while keys := list(self.waiting(apps, self.size)):
            with transaction.atomic(using=alias):
                self.change(apps, keys)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        said = {"waiting": self.waiting, "change": self.change, "size": self.size}
        return self.__class__.__name__, [], said

    def describe(self) -> str:
        return f"Change rows by portions of {self.size}"


# --- tables that lie in parts ----------------------------------------------------------------------------


def is_partitioned(editor: Any, table: str) -> bool:
    with editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_class WHERE oid = to_regclass(%s) AND relkind = 'p'", [table])
        return cursor.fetchone() is not None


def list_partitions_without_index(editor: Any, table: str, index: str) -> list[tuple[int, str]]:
    """Numbers and names of the parts that have no index belonging to that of the whole."""
    with editor.connection.cursor() as cursor:
        cursor.execute(PARTITIONS_WITHOUT_INDEX_SQL, [table, index])
        found: list[tuple[int, str]] = cursor.fetchall()
        return found
