"""Querysets of fixed form, whose SQL is compiled once per process.

Building and compiling a queryset takes longer than most queries.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Generic, ParamSpec, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, Prefetch, QuerySet, prefetch_related_objects
from django.db.models.query import ModelIterable, get_related_populators

from core.db.fast.pipeline import Rows, Statement, get_connection, read_together
from core.db.workspace_scope import all_workspaces
from core.shared_cache import SharedLRUCache

P = ParamSpec("P")
T = TypeVar("T")
# An argument of a query, or an element of a list argument.
Value = int | str | datetime

# Placeholders for arguments while a queryset is compiled. The numbers fit 4-byte integer columns. The same
# number or text in a queryset itself would be taken for an argument.
FIRST_PLACEHOLDER = 2_000_000_011
TEXT_PLACEHOLDER = "compiled query, argument {}"
FIRST_TIME_PLACEHOLDER = datetime(1901, 2, 3, 4, 5, 6, tzinfo=UTC)
# How many compiled forms of one query are cached. There is one for each length of its list arguments.
MAX_FORMS = 200
# Forms with more values are not cached: they are large and rarely used again.
MAX_VALUES = 300
COLLECTIONS = (list, tuple, set, frozenset)


class NotCompilable(TypeError):
    """The queryset does not pass an argument to the database as it is."""


@dataclass(frozen=True)
class Placeholder:
    """The place of an argument in the parameters of a statement."""

    # The index among all values. Each element of a list argument counts as one value.
    position: int
    # Converts the value to the type of the parameter, such as psycopg's Int8.
    adapt: Callable[[Any], Any]
    # What surrounds the argument in a LIKE pattern; None if it is not part of one.
    like: tuple[str, str] | None = None

    def bind(self, value: Value) -> Any:
        if self.like is None:
            return self.adapt(value)
        before, after = self.like
        return f"{before}{get_connection().ops.prep_for_like_query(value)}{after}"


@dataclass(frozen=True)
class CompiledForm:
    """SQL and result conversion of a queryset for given lengths of its list arguments."""

    queryset: "QuerySet[Any, Any]"
    # The Django compiler that compiled the query. It knows how to convert rows.
    compiler: Any
    sql: str
    # Placeholders and constants.
    params: list[Any]
    # The functions that convert columns, by position. Finding them takes longer than converting a row.
    converters: Any = None

    @property
    def positions(self) -> set[int]:
        return {param.position for param in self.params if isinstance(param, Placeholder)}

    def bind(self, values: Sequence[Value]) -> Statement:
        params = [
            param.bind(values[param.position]) if type(param) is Placeholder else param
            for param in self.params
        ]
        return self.sql, params

    def convert_rows(self, rows: Rows) -> list[Any]:
        """Convert database rows to what the queryset returns: model instances or tuples."""
        if not rows:
            return []
        queryset: Any = self.queryset
        if queryset._iterable_class is not ModelIterable:
            return self.convert_by_queryset(rows)
        converted = self.build_instances(self.convert_columns(rows))
        if queryset._prefetch_related_lookups:
            prefetch_related_objects(converted, *queryset._prefetch_related_lookups)
        return converted

    def convert_columns(self, rows: Rows) -> "Sequence[Sequence[Any]]":
        """Apply the functions that convert columns, as Django's compiler does."""
        if not self.converters:
            return rows
        connection = get_connection()
        converted = [list(row) for row in rows]
        for position, (functions, expression) in self.converters.items():
            for row in converted:
                value = row[position]
                for function in functions:
                    value = function(value, expression, connection)
                row[position] = value
        return converted

    @cached_property
    def instance_layout(self) -> "InstanceLayout":
        return InstanceLayout.from_compiler(self.compiler)

    def build_instances(self, rows: "Sequence[Sequence[Any]]") -> list[Any]:
        """Build model instances with related ones and annotations, as Django's ModelIterable does."""
        layout = self.instance_layout
        model, start, end, names = layout.model, layout.start, layout.end, layout.names
        instances = []
        for row in rows:
            instance = model.from_db(DEFAULT_DB_ALIAS, names, row[start:end])
            for populator in layout.populators:
                populator.populate(row, instance)
            for name, position in layout.annotations:
                setattr(instance, name, row[position])
            instances.append(instance)
        return instances

    def convert_by_queryset(self, rows: Rows) -> list[Any]:
        """Convert rows with the row iterable of the queryset, such as that of `values_list`."""
        compiler = copy(self.compiler)
        # Another thread may have created the compiler, with its own connection.
        compiler.connection = get_connection()
        compiler.execute_sql = lambda *_args, **_options: [rows]
        compiler.get_converters = lambda _expressions: self.converters
        queryset: Any = self.queryset
        return list(queryset._iterable_class(FetchedQuerySet(queryset, compiler)))


@dataclass(frozen=True)
class InstanceLayout:
    """Which columns of a row belong to the model, to related models and to annotations."""

    model: type[Model]
    start: int
    end: int
    names: list[str]
    # Django's objects that set the related instances for `select_related`.
    populators: list[Any]
    annotations: list[tuple[str, int]]

    @classmethod
    def from_compiler(cls, compiler: Any) -> "InstanceLayout":
        info, select = compiler.klass_info, compiler.select
        start, end = info["select_fields"][0], info["select_fields"][-1] + 1
        names = [expression.target.attname for expression, *_ in select[start:end]]
        # Any, because the type stubs are for a later Django, where the function has one more parameter.
        get_populators: Any = get_related_populators
        populators = get_populators(info, select, DEFAULT_DB_ALIAS)
        return cls(info["model"], start, end, names, populators, list(compiler.annotation_col_map.items()))


class FetchedQuerySet:
    """What Django's row iterables need of a queryset whose rows are fetched already."""

    def __init__(self, queryset: Any, compiler: Any) -> None:
        self.db = DEFAULT_DB_ALIAS
        self.query = FetchedQuery(queryset.query, compiler)
        self._fields = queryset._fields
        self._known_related_objects: dict[Any, Any] = {}


class FetchedQuery:
    def __init__(self, query: Any, compiler: Any) -> None:
        self._query, self._compiler = query, compiler

    def get_compiler(self, using: str) -> Any:
        return self._compiler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)


@dataclass(frozen=True)
class BoundQuery:
    """A compiled queryset with its arguments."""

    form: CompiledForm
    values: list[Value]


class CompiledQueries:
    """A function that returns querysets, compiled on the first call for each length of its list arguments.

    The arguments may be integers, texts, times, models (their primary keys are used) and collections of
    these. Each must be compared with a column as it is, or as part of a pattern, as in
    `filter(name__contains=…)`. Every queryset must use the first argument, which is usually the workspace.
    The queries run on the primary database.
    """

    def __init__(self, build: "Callable[..., Sequence[QuerySet[Any, Any]]]") -> None:
        self.build = build
        self.forms: SharedLRUCache[Any, list[CompiledForm]] = SharedLRUCache(MAX_FORMS)

    def __call__(self, *args: Any) -> list[list[Any]]:
        return fetch_together(self.bind(*args))

    def bind(self, *args: Any) -> list[BoundQuery]:
        """Return the queries with these arguments, to be sent by `fetch_together`."""
        shape = tuple([len(arg) if isinstance(arg, COLLECTIONS) else None for arg in args])
        values = list(flatten_arguments(args))
        key = (get_connection().vendor, shape, tuple([type(value) for value in values]))
        forms = self.forms.find(key)
        if forms is None:
            forms = compile_forms(self.build, shape, values)
            if len(values) <= MAX_VALUES:
                self.forms.store(key, forms)
        return [BoundQuery(form, values) for form in forms]


class CompiledQuery(Generic[P, T]):
    """A function that returns one queryset, as a function that returns a list. See CompiledQueries."""

    def __init__(self, build: "Callable[P, QuerySet[Any, T]]") -> None:
        self.queries = CompiledQueries(lambda *args: [build(*args)])  # type: ignore[call-arg]  # positional

    def __call__(self, *args: P.args, **_: P.kwargs) -> list[T]:
        return self.queries(*args)[0]

    def bind(self, *args: P.args, **_: P.kwargs) -> BoundQuery:
        return self.queries.bind(*args)[0]


def fetch_together(queries: Sequence[BoundQuery]) -> list[list[Any]]:
    """Fetch the rows of several queries, in one round trip where possible."""
    sendable = [query for query in queries if query.form.sql]
    fetched = iter(read_together([query.form.bind(query.values) for query in sendable]))
    return [query.form.convert_rows(next(fetched)) if query.form.sql else [] for query in queries]


def flatten_arguments(args: Sequence[Any]) -> Iterator[Value]:
    for arg in args:
        for given in arg if isinstance(arg, COLLECTIONS) else (arg,):
            value = given.pk if isinstance(given, Model) else given
            if type(value) not in (int, str, datetime):
                raise NotCompilable(f"{type(value).__name__} is not supported as an argument.")
            yield value


def compile_forms(build: Any, shape: Sequence[int | None], values: Sequence[Value]) -> list[CompiledForm]:
    """Call the function with placeholders as arguments, and compile the querysets it returns.

    Managers filter by the current workspace scope. The compiled SQL is used for all workspaces, so there is
    no such scope while it is built: the workspace must be an argument.
    """
    placeholders = [build_placeholder(number, value) for number, value in enumerate(values)]
    remaining = iter(placeholders)
    args = [
        next(remaining) if length is None else [next(remaining) for _ in range(length)] for length in shape
    ]
    positions = {adapt_time(placeholder): number for number, placeholder in enumerate(placeholders)}
    with all_workspaces():
        forms = [compile_queryset(queryset, positions) for queryset in build(*args)]
    if any(0 not in form.positions for form in forms if form.sql):
        raise NotCompilable("A queryset does not compare the first argument with a column.")
    used = set().union(*[form.positions for form in forms])
    if used != set(range(len(values))) and all(form.sql for form in forms):
        raise NotCompilable("An argument is not compared with a column as it is.")
    return forms


def build_placeholder(number: int, value: Value) -> Value:
    if isinstance(value, datetime):
        return FIRST_TIME_PLACEHOLDER + timedelta(microseconds=number + 1)
    return FIRST_PLACEHOLDER + number if type(value) is int else TEXT_PLACEHOLDER.format(number)


def adapt_time(value: Any) -> Any:
    """Convert a time to the parameter that Django makes of it, on SQLite a text."""
    ops: Any = get_connection().ops
    return ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


def compile_queryset(queryset: "QuerySet[Any, Any]", positions: Mapping[Any, int]) -> CompiledForm:
    lookups: Any = queryset._prefetch_related_lookups  # type: ignore[attr-defined]
    if any(isinstance(lookup, Prefetch) and lookup.queryset is not None for lookup in lookups):
        raise NotCompilable("A prefetched queryset would keep the placeholders of its arguments.")
    compiler = queryset.query.get_compiler(connection=get_connection())
    try:
        sql, params = compiler.as_sql()
    except EmptyResultSet:
        # A filter by an empty list: there are no rows.
        return CompiledForm(queryset, compiler, "", [])
    bound = [find_placeholder(param, positions) or param for param in params]
    converters = compiler.get_converters([expression for expression, *_ in compiler.select])
    return CompiledForm(queryset, compiler, sql, bound, converters)


def find_placeholder(param: Any, positions: Mapping[Any, int]) -> Placeholder | None:
    """Return the placeholder that a parameter is, or that it is a pattern of; None for a constant."""
    if not isinstance(param, int | str | datetime):
        return None
    if param in positions:
        is_integer = isinstance(param, int)
        return Placeholder(positions[param], type(param) if is_integer else adapt_time)
    text = param.strip("%") if isinstance(param, str) else ""
    if text not in positions:
        return None
    before, _, after = str(param).partition(text)
    return Placeholder(positions[text], str, (before, after))
