"""INSERT and UPDATE statements that are compiled once per model. Django builds them for every call."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Field, Model

from core.db.pipeline import Statement, execute_together

# Larger inserts gain little, and SQLite limits the number of parameters.
MAX_ROWS = 100


@dataclass(frozen=True)
class InsertForm:
    """The fixed parts of an INSERT into the table of a model."""

    fields: "tuple[Field[Any, Any], ...]"
    head: str
    row: str
    tail: str

    def build_sql(self, count: int) -> str:
        return f"{self.head} {', '.join([self.row] * count)} {self.tail}"


def can_insert_rows(rows: Sequence[Model], *, is_upsert: bool) -> bool:
    """Whether WriteBatch supports these rows: new ones without primary keys, or an upsert with them."""
    return 0 < len(rows) <= MAX_ROWS and all((row.pk is not None) == is_upsert for row in rows)


class WriteBatch:
    """Inserts and updates that are sent together, in one round trip where possible.

    New rows have no primary keys before.
    """

    def __init__(self) -> None:
        self.writes: list[tuple[Sequence[Any], Statement]] = []

    def add(
        self,
        model: type[Model],
        rows: Sequence[Any],
        *,
        unique_fields: Sequence[str] = (),
        update_fields: Sequence[str] = (),
    ) -> None:
        """Add an INSERT of these rows. With `update_fields`, it updates rows whose `unique_fields` exist."""
        form = compile_insert(model, connection.vendor, tuple(unique_fields), tuple(update_fields))
        params: list[Any] = []
        for row in rows:
            row._prepare_related_fields_for_save(operation_name="bulk_create")
            params += [
                field.get_db_prep_save(field.pre_save(row, True), connection=connection)
                for field in form.fields
            ]
        self.writes.append((rows, (form.build_sql(len(rows)), params)))

    def update(self, row: Model) -> None:
        """Add an UPDATE of all columns of a row."""
        sql, fields = compile_update(type(row), connection.vendor)
        params = [
            field.get_db_prep_save(field.pre_save(row, False), connection=connection) for field in fields
        ]
        self.writes.append(([row], (sql, [*params, row.pk])))

    def send(self) -> None:
        """Send the statements in order, and set the primary keys of new rows, as `bulk_create` does.

        Raise DatabaseError if a row to be updated does not exist any more.
        """
        with transaction.mark_for_rollback_on_error(using=connection.alias):
            results = execute_together([statement for _, statement in self.writes])
            if any(len(rows) != len(ids) for (rows, _), ids in zip(self.writes, results, strict=True)):
                raise DatabaseError("A row to be updated does not exist.")
        for (rows, _), ids in zip(self.writes, results, strict=True):
            for row, (pk,) in zip(rows, ids, strict=True):
                row.pk, row._state.adding, row._state.db = pk, False, connection.alias
        self.writes = []


@lru_cache(maxsize=200)
def compile_insert(
    model: type[Model], vendor: str, unique_fields: tuple[str, ...], update_fields: tuple[str, ...]
) -> InsertForm:
    options: Any = model._meta
    quote = connection.ops.quote_name
    check_placeholders(model)
    with_key = bool(update_fields)
    fields = [field for field in options.concrete_fields if with_key or field is not options.pk]

    def get_column(name: str) -> str:
        return quote(options.get_field(name).column)

    conflict = ""
    if update_fields:
        target = ", ".join(get_column(name) for name in unique_fields)
        changes = ", ".join(f"{(name := get_column(field))} = EXCLUDED.{name}" for field in update_fields)
        conflict = f"ON CONFLICT ({target}) DO UPDATE SET {changes} "
    columns = ", ".join(quote(field.column) for field in fields)
    return InsertForm(
        tuple(fields),
        f"INSERT INTO {quote(options.db_table)} ({columns}) VALUES",
        f"({', '.join(['%s'] * len(fields))})",
        f"{conflict}RETURNING {quote(options.pk.column)}",
    )


@lru_cache(maxsize=200)
def compile_update(model: type[Model], vendor: str) -> "tuple[str, list[Field[Any, Any]]]":
    options: Any = model._meta
    quote = connection.ops.quote_name
    check_placeholders(model)
    fields = [field for field in options.concrete_fields if field is not options.pk]
    columns = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    key = quote(options.pk.column)
    sql = f"UPDATE {quote(options.db_table)} SET {columns} WHERE {key} = %s RETURNING {key}"  # noqa: S608  # names only
    return sql, fields


def check_placeholders(model: type[Model]) -> None:
    fields = model._meta.concrete_fields
    if model._meta.parents or any(get_placeholder(field) != "%s" for field in fields):
        raise TypeError(f"{model.__name__} has columns that take more than a value.")


def get_placeholder(field: Any) -> str:
    if not hasattr(field, "get_placeholder"):
        return "%s"
    return str(field.get_placeholder(None, None, connection))
