"""Several questions put to the database in one statement, each answered as it would be by itself."""

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet, Window
from django.db.models.functions import RowNumber
from django.db.models.query import ModelIterable

# A column that all share takes what is narrower; every other type has columns of its own.
WIDER = ((re.compile(r"^(varchar|char|text)"), "text"), (re.compile(r"int"), "bigint"))
PLACE = "place_in_its_question"
Row = Sequence[Any]


def read_together(*asked: "QuerySet[Any, Any]") -> list[list[Any]]:
    """The records of each, in its order and with all that it joins; bare values come in no order.

    A row takes up the columns of the widest question, mostly empty. Slices and `distinct` are not for this.
    """
    questions = [Question(rows) for rows in asked]
    found: list[list[Row]] = [[] for _ in questions]
    for row in fetched(questions):
        found[row[0]].append(row)
    return [question.answers(rows) for question, rows in zip(questions, found, strict=True)]


def fetched(questions: Sequence["Question"]) -> list[Row]:
    """Each row begins with the number of its question."""
    open_ones = [(number, question) for number, question in enumerate(questions) if question.sql]
    if not open_ones:
        return []
    columns: list[str] = []
    for _, question in open_ones:
        question.take_columns(columns)
    named = [f"q{number} ({question.names}) AS ({question.sql})" for number, question in open_ones]
    parts = [f"SELECT {number}, {one.spread(columns)} FROM q{number}" for number, one in open_ones]  # noqa: S608  # Django's words, and numbers
    with connections[questions[0].rows.db].cursor() as cursor:
        statement = f"WITH {', '.join(named)} {' UNION ALL '.join(parts)}"
        cursor.execute(statement, [value for _, question in open_ones for value in question.params])
        rows: list[Row] = cursor.fetchall()
    return rows


class Question:
    """One of them, and which of the shared columns hold its answer."""

    def __init__(self, rows: "QuerySet[Any, Any]") -> None:
        is_placed = rows.ordered and rows._iterable_class is ModelIterable
        self.rows = in_places(rows) if is_placed else rows.order_by()
        self.compiler: Any = self.rows.query.get_compiler(using=rows.db)
        self.columns: list[int] = []
        self.sql, self.params = written(self.compiler)

    def take_columns(self, columns: list[str]) -> None:
        """Of the types it needs, and further ones where others have not brought enough of them."""
        free = dict(enumerate(columns))
        for expression, _sql, _alias in self.compiler.select:
            wanted = self.type_of(expression)
            at = next((at for at, kind in free.items() if kind == wanted), len(columns))
            if free.pop(at, None) is None:
                columns.append(wanted)
            self.columns.append(at)

    def type_of(self, expression: Any) -> str:
        said: str = expression.output_field.cast_db_type(self.compiler.connection)
        return next((wider for pattern, wider in WIDER if pattern.search(said)), said)

    @property
    def names(self) -> str:
        return ", ".join(f"c{at}" for at in self.columns)

    def spread(self, columns: Sequence[str]) -> str:
        """An empty column must say its type, or the database would take it for text."""
        own = set(self.columns)
        said = [f"c{at}" if at in own else f"CAST(NULL AS {kind})" for at, kind in enumerate(columns)]
        return ", ".join(said)

    def answers(self, rows: Iterable[Row]) -> list[Any]:
        """Django reads them as if it had asked itself: each is what the question alone would have found."""
        if not self.sql:
            return []
        # One thing got would be no row: so there are always two.
        own = itemgetter(*(at + 1 for at in self.columns), 0)
        found = [own(row)[:-1] for row in rows]
        place = (self.compiler.annotation_col_map or {}).get(PLACE)
        if place is not None:
            found.sort(key=itemgetter(place))
        self.compiler.execute_sql = lambda *_args, **_more: [found]
        self.rows.query.get_compiler = lambda *_args, **_more: self.compiler  # type: ignore[method-assign]  # of this one alone
        return list(self.rows)


def written(compiler: Any) -> tuple[str, Sequence[Any]]:
    """The statement; none where nothing can be found."""
    try:
        sql, params = compiler.as_sql()
    except EmptyResultSet:
        return "", ()
    return sql, params


def in_places(rows: "QuerySet[Any, Any]") -> "QuerySet[Any, Any]":
    """A union has no order of its own, and only the database knows how it sorts: each row says its place."""
    order: Any = rows.query.order_by or rows.model._meta.ordering
    placed: QuerySet[Any, Any] = rows.annotate(**{PLACE: Window(RowNumber(), order_by=list(order))})
    return placed.order_by()
