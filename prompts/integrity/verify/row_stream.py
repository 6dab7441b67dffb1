"""Rows from the database one after the other, in constant memory; one that cannot be read is named."""

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from django.db import Error as DatabaseFailure
from django.db import connection, transaction
from django.db.models import CharField, Func, QuerySet

from personas.models import Workspace
from prompts.hashed_rows import PromptKey, RowLike
from prompts.models import AgentPrompt, PromptVersion
from prompts.proof.faults import Fault

T = TypeVar("T")
CHUNK_SIZE = 2_000
# Rows that are sorted in one go: those of few prompts, so that no sort outgrows its memory.
MAX_BATCH_ROWS = 5_000
# Columns that are counted or compared with.
INTEGER_COLUMNS = (
    "number",
    "sequence",
    "first_id",
    "last_id",
    "months",
    "prompt_id",
    "version_id",
    "block_id",
    "size",
)
# Version numbers remembered at a time.
MAX_CACHED_NUMBERS = 50_000
# What a value that is not of its column's kind ends in; SQLite holds whatever it was given.
READ_ERRORS = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, DatabaseFailure)


class TimestampText(Func):
    """A time as the text that is hashed: the database writes it quicker than we read and write it again."""

    template = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
    output_field = CharField()


def iterate_rows(
    rows: QuerySet[Any], columns: tuple[str, ...], table: str, *, chunk: int = CHUNK_SIZE, spelled: str = ""
) -> Iterator[RowLike | Fault]:
    """Named tuples of the columns, `id` first, in the order of the question.

    The time in the column `spelled` is there to be hashed only, and may come as text.
    """
    seen, has_types = 0, connection.vendor == "postgresql"
    asked = [TimestampText(name) if has_types and name == spelled else name for name in columns]
    named = get_row_factory(columns)
    try:
        for values in rows.values_list("id", *asked).iterator(chunk_size=chunk):
            seen += 1
            row = named(values)
            yield row if has_types else find_type_fault(row, table) or row
    except READ_ERRORS:
        if has_types:
            # This is trouble with the database, and not a row's fault.
            raise
        yield from read_rows_singly(rows, columns, table, seen)


@cache
def get_row_factory(columns: tuple[str, ...]) -> Callable[[Iterable[Any]], RowLike]:
    kind: Any = namedtuple("Row", ("id", *columns))  # type: ignore[misc]  # noqa: PYI024  # one for each table
    make: Callable[[Iterable[Any]], RowLike] = kind._make
    return make


def read_rows_singly(
    rows: QuerySet[Any], columns: tuple[str, ...], table: str, seen: int
) -> Iterator[RowLike | Fault]:
    """From the first row that broke the stream on: slow, and only when something is wrong."""
    ids = list(islice(rows.values_list("id", flat=True).iterator(), seen, None))
    for number in ids:
        try:
            yield get_row_factory(columns)(rows.filter(pk=number).values_list("id", *columns).get())
        except READ_ERRORS as error:
            yield Fault(table, f"{table} with the id {number}", f"it cannot be read: {type(error).__name__}")


def find_type_fault(row: RowLike, table: str) -> Fault | None:
    """SQLite keeps words in a column for numbers, and then neither counts nor compares."""
    for name in INTEGER_COLUMNS:
        value = getattr(row, name, None)
        if not (value is None or isinstance(value, int)):
            return Fault(table, f"{table} with the id {row.id}", f"its {name} is no number")
    return None


class PromptChainEnds(NamedTuple):
    """A prompt as its own row tells it: agent, channel, and where its chains are said to end."""

    id: int
    agent_id: int
    channel_id: int
    last_number: int
    last_hash: str
    latest_id: int | None
    last_move: int
    last_move_hash: str

    @property
    def line(self) -> PromptKey:
        return PromptKey(self.agent_id, self.channel_id)


UNKNOWN_PROMPT = PromptKey(0, None)


class WorkspacePrompts:
    """The prompts of a workspace; few, and so held."""

    def __init__(self, workspace: Workspace) -> None:
        rows = (
            AgentPrompt.objects.in_workspace(workspace).order_by("pk").values_list(*PromptChainEnds._fields)
        )
        self.by_id = {row[0]: PromptChainEnds(*row) for row in rows}

    def line(self, prompt_id: int) -> PromptKey:
        """Of a prompt that is not there, one that no hash was made with."""
        found = self.by_id.get(prompt_id)
        return found.line if found else UNKNOWN_PROMPT

    def batches(self, length: str) -> Iterator[list[int]]:
        """Ids of prompts whose chains, `last_number` or `last_move` long, are read together."""
        batch: list[int] = []
        rows = 0
        for prompt in self.by_id.values():
            batch.append(prompt.id)
            rows += getattr(prompt, length) + 1
            if rows > MAX_BATCH_ROWS:
                yield batch
                batch, rows = [], 0
        if batch:
            yield batch


class VersionNumbers:
    """Which number of which prompt a version's id stands for: asked in bulk, so many remembered."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.known: dict[int, tuple[int, int]] = {}

    def learn(self, ids: Iterable[int | None]) -> None:
        wanted = {number for number in ids if isinstance(number, int) and number not in self.known}
        if not wanted:
            return
        if len(self.known) > MAX_CACHED_NUMBERS:
            self.known.clear()
        rows = PromptVersion.objects.in_workspace(self.workspace)
        for some in iterate_chunks(sorted(wanted), CHUNK_SIZE):
            found = rows.filter(pk__in=some).values_list("id", "prompt_id", "number")
            self.known.update((key, (prompt, number)) for key, prompt, number in found)

    def of(self, version_id: int | None, prompt_id: int) -> int | None:
        """The number; nought for a version that this prompt does not have."""
        if version_id is None:
            return None
        prompt, number = self.known.get(version_id, (0, 0))
        return number if prompt == prompt_id else 0


def iterate_chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    waiting = iter(items)
    while some := list(islice(waiting, size)):
        yield some


def find_orphan_rows(rows: QuerySet[Any], prompts: WorkspacePrompts, table: str) -> Iterator[Fault]:
    """Rows of the workspace whose prompt is not: no chain would meet them."""
    lost = rows.exclude(prompt_id__in=list(prompts.by_id)) if prompts.by_id else rows
    for number in lost.order_by("pk").values_list("id", flat=True)[:10]:
        yield Fault(table, f"{table} with the id {number}", "it belongs to no prompt of this workspace")


@contextmanager
def read_only_snapshot() -> Iterator[None]:
    """All questions inside see the same rows, and writers are not kept waiting; nothing can be written."""
    if connection.in_atomic_block:
        # The caller's transaction, which has its own view already.
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        with sqlite_read_transaction():
            yield


@contextmanager
def sqlite_read_transaction() -> Iterator[None]:
    """In SQLite: Django's own transactions take the lock of a writer, which this must not."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
