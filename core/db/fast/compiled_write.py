"""INSERT and UPDATE statements that are compiled once per model. Django builds them for every call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Field, Model

from core.db.fast.compiled_query import BoundQuery
from core.db.fast.pipeline import Rows, Statement, execute_together, get_connection

# Enough for a batch of a build, which has up to a few hundred rows. Both databases limit the number of
# parameters of a statement; the lower limit is 32,766.
MAX_ROWS = 400


@dataclass(frozen=True)
class InsertForm:
    """The fixed parts of an INSERT into the table of a model."""

    fields: "tuple[Field[Any, Any], ...]"
    head: str
    row: str
    tail: str

    def build_sql(self, count: int) -> str:
        return f"{self.head} {', '.join([self.row] * count)} {self.tail}"


def can_insert_rows(rows: Sequence[Model], *, has_keys: bool) -> bool:
    """Whether WriteBatch supports these rows: all with primary keys, or all without."""
    return 0 < len(rows) <= MAX_ROWS and all((row.pk is not None) == has_keys for row in rows)


def build_key_query(model: type[Model], count: int) -> Statement | None:
    """Build the statement that reserves primary keys for new rows. None if the database cannot do that."""
    if get_connection().vendor != "postgresql":
        return None
    sequence = "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s::int)"
    return sequence, [model._meta.db_table, model._meta.pk.column, count]


class WriteBatch:
    """Inserts and updates that are sent together, in one round trip where possible."""

    def __init__(self) -> None:
        # The statements, each with a function that is given the rows that the statement returns.
        self.writes: list[tuple[Statement, Callable[[Rows], None]]] = []

    def add_statement(self, statement: Statement, read_rows: Callable[[Rows], None]) -> None:
        """Add a statement that returns rows. `read_rows` gets them, and may raise an error."""
        self.writes.append((statement, read_rows))

    def add(
        self,
        model: type[Model],
        rows: Sequence[Any],
        *,
        unique_fields: Sequence[str] = (),
        update_fields: Sequence[str] = (),
        has_keys: bool = False,
    ) -> None:
        """Add an INSERT of these rows. With `update_fields`, it updates rows whose `unique_fields` exist.

        Without `has_keys`, the database gives the rows their primary keys.
        """
        connection = get_connection()
        form = compile_insert(model, connection.vendor, tuple(unique_fields), tuple(update_fields), has_keys)
        params: list[Any] = []
        for row in rows:
            row._prepare_related_fields_for_save(operation_name="bulk_create")
            params += [
                field.get_db_prep_save(field.pre_save(row, True), connection=connection)
                for field in form.fields
            ]
        self.add_statement((form.build_sql(len(rows)), params), partial(set_stored, rows))

    def update(self, row: Model) -> None:
        """Add an UPDATE of all columns of a row."""
        connection = get_connection()
        sql, fields = compile_update(type(row), connection.vendor)
        params = [
            field.get_db_prep_save(field.pre_save(row, False), connection=connection) for field in fields
        ]
        self.add_statement((sql, params), partial(set_stored, [row]))

    def send(self, queries: Sequence[BoundQuery] = ()) -> list[list[Any]]:
        """Send the statements in order, and set the primary keys of new rows, as `bulk_create` does.

        The queries are sent after them; return their results. Raise DatabaseError if a row to be updated does
        not exist any more.
        """
        reads = [query.form.bind(query.values) for query in queries]
        writes, self.writes = self.writes, []
        with transaction.mark_for_rollback_on_error(using=get_connection().alias):
            results = execute_together([*[statement for statement, _ in writes], *reads])
            for (_, read_rows), rows in zip(writes, results, strict=False):
                read_rows(rows)
        found = results[len(writes) :]
        return [query.form.convert_rows(rows) for query, rows in zip(queries, found, strict=True)]


def set_stored(rows: Sequence[Any], ids: Rows) -> None:
    """Set the primary keys of rows that were written, and that they are stored."""
    if len(rows) != len(ids):
        raise DatabaseError("A row to be updated does not exist.")
    alias = get_connection().alias
    for row, (pk,) in zip(rows, ids, strict=True):
        row.pk, row._state.adding, row._state.db = pk, False, alias


@lru_cache(maxsize=200)
def compile_insert(
    model: type[Model],
    vendor: str,
    unique_fields: tuple[str, ...],
    update_fields: tuple[str, ...],
    has_keys: bool = False,
) -> InsertForm:
    options: Any = model._meta
    quote = get_connection().ops.quote_name
    check_placeholders(model)
    with_key = has_keys or bool(update_fields)
    fields = [field for field in options.concrete_fields if with_key or field is not options.pk]

    def get_column(name: str) -> str:
        return str(quote(options.get_field(name).column))

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
    """Return the statement and the fields of its parameters.

    A row of a workspace is found by its workspace and id. It never moves to another workspace.
    """
    options: Any = model._meta
    quote = get_connection().ops.quote_name
    check_placeholders(model)
    keys = [field for field in options.concrete_fields if field is options.pk or field.name == "workspace"]
    fields = [field for field in options.concrete_fields if field not in keys]
    columns = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    condition = " AND ".join(f"{quote(field.column)} = %s" for field in keys)
    table, key = quote(options.db_table), quote(options.pk.column)
    sql = f"UPDATE {table} SET {columns} WHERE {condition} RETURNING {key}"  # noqa: S608  # names only
    return sql, [*fields, *keys]


def check_placeholders(model: type[Model]) -> None:
    fields = model._meta.concrete_fields
    if model._meta.parents or any(get_placeholder(field) != "%s" for field in fields):
        raise TypeError(f"{model.__name__} has columns whose values are SQL expressions.")


def get_placeholder(field: Any) -> str:
    if not hasattr(field, "get_placeholder"):
        return "%s"
    return str(field.get_placeholder(None, None, get_connection()))
