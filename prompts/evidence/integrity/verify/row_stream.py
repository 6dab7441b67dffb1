"""Stream rows from the database in constant memory; an unreadable row becomes a fault."""

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
from prompts.models import AgentPrompt, PromptVersion
from prompts.proof.faults import Fault
from prompts.proof_rows import PromptKey, RowLike

T = TypeVar("T")
CHUNK_SIZE = 2_000
# The rows of several prompts are read together, about this many at a time, so that the database can sort
# them in memory.
MAX_BATCH_ROWS = 5_000
# Columns used in arithmetic and comparisons. On SQLite, which accepts text in them, their type is checked.
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
# The cache of version numbers is cleared when it has more entries than this.
MAX_CACHED_NUMBERS = 50_000
# Errors caused by a value of the wrong type: SQLite does not enforce column types.
READ_ERRORS = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, DatabaseFailure)


class TimestampText(Func):
    """Format a timestamp in SQL as the text that is hashed: faster than parsing and formatting in Python."""

    template = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
    output_field = CharField()


def iterate_rows(
    rows: QuerySet[Any],
    columns: tuple[str, ...],
    table: str,
    *,
    chunk: int = CHUNK_SIZE,
    timestamp_text: str = "",
) -> Iterator[RowLike | Fault]:
    """Yield named tuples of `id` and the columns, in the order of the query.

    `timestamp_text` names a timestamp column that is only hashed: PostgreSQL returns it as the text to hash.
    """
    count, has_types = 0, connection.vendor == "postgresql"
    expressions = [TimestampText(name) if has_types and name == timestamp_text else name for name in columns]
    make_row = get_row_factory(columns)
    try:
        for values in rows.values_list("id", *expressions).iterator(chunk_size=chunk):
            count += 1
            row = make_row(values)
            yield row if has_types else find_type_fault(row, table) or row
    except READ_ERRORS:
        if has_types:
            # PostgreSQL enforces column types, so a bad row cannot cause this: the database itself failed.
            raise
        yield from read_rows_singly(rows, columns, table, count)


@cache
def get_row_factory(columns: tuple[str, ...]) -> Callable[[Iterable[Any]], RowLike]:
    row_class: Any = namedtuple("Row", ("id", *columns))  # type: ignore[misc]  # noqa: PYI024  # one for each table
    make: Callable[[Iterable[Any]], RowLike] = row_class._make
    return make


def read_rows_singly(
    rows: QuerySet[Any], columns: tuple[str, ...], table: str, skip: int
) -> Iterator[RowLike | Fault]:
    """Read the rows after the first `skip` rows one by one, after streaming failed at a bad row.

    This is slow, but identifies the bad row.
    """
    ids = list(islice(rows.values_list("id", flat=True).iterator(), skip, None))
    for row_id in ids:
        try:
            yield get_row_factory(columns)(rows.filter(pk=row_id).values_list("id", *columns).get())
        except READ_ERRORS as error:
            yield Fault(table, f"{table} with the id {row_id}", f"it cannot be read: {type(error).__name__}")


def find_type_fault(row: RowLike, table: str) -> Fault | None:
    """Find text in an integer column, which SQLite accepts."""
    for name in INTEGER_COLUMNS:
        value = getattr(row, name, None)
        if not (value is None or isinstance(value, int)):
            return Fault(table, f"{table} with the id {row.id}", f"its {name} is not a number")
    return None


class PromptChainEnds(NamedTuple):
    """A prompt's row: agent, channel, and the recorded ends of its chains of versions and label moves."""

    id: int
    agent_id: int
    channel_id: int
    last_number: int
    last_hash: str
    latest_id: int | None
    last_move: int
    last_move_hash: str

    @property
    def key(self) -> PromptKey:
        return PromptKey(self.agent_id, self.channel_id)


UNKNOWN_PROMPT = PromptKey(0, None)


class WorkspacePrompts:
    """The prompts of a workspace, kept in memory: there are few."""

    def __init__(self, workspace: Workspace) -> None:
        rows = (
            AgentPrompt.objects.in_workspace(workspace).order_by("pk").values_list(*PromptChainEnds._fields)
        )
        self.by_id = {row[0]: PromptChainEnds(*row) for row in rows}

    def get_key(self, prompt_id: int) -> PromptKey:
        """Return agent and channel of a prompt; if it is missing, a key for which no row's hash is valid."""
        prompt = self.by_id.get(prompt_id)
        return prompt.key if prompt else UNKNOWN_PROMPT

    def iterate_batches(self, length_column: str) -> Iterator[list[int]]:
        """Yield lists of ids of prompts to read together, about MAX_BATCH_ROWS rows each.

        `length_column` is the column with the length of the chain: `last_number` or `last_move`.
        """
        batch: list[int] = []
        rows = 0
        for prompt in self.by_id.values():
            batch.append(prompt.id)
            rows += getattr(prompt, length_column) + 1
            if rows > MAX_BATCH_ROWS:
                yield batch
                batch, rows = [], 0
        if batch:
            yield batch


class VersionNumbers:
    """A bounded cache from version id to prompt and number, loaded in bulk."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.numbers_by_id: dict[int, tuple[int, int]] = {}

    def load(self, ids: Iterable[int | None]) -> None:
        missing = {number for number in ids if isinstance(number, int) and number not in self.numbers_by_id}
        if not missing:
            return
        if len(self.numbers_by_id) > MAX_CACHED_NUMBERS:
            self.numbers_by_id.clear()
        rows = PromptVersion.objects.in_workspace(self.workspace)
        for chunk in iterate_chunks(sorted(missing), CHUNK_SIZE):
            versions = rows.filter(pk__in=chunk).values_list("id", "prompt_id", "number")
            self.numbers_by_id.update((key, (prompt, number)) for key, prompt, number in versions)

    def get_number(self, version_id: int | None, prompt_id: int) -> int | None:
        """Return the number of a loaded version; 0 if it is not a version of this prompt."""
        if version_id is None:
            return None
        prompt, number = self.numbers_by_id.get(version_id, (0, 0))
        return number if prompt == prompt_id else 0


def iterate_chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def find_orphan_rows(rows: QuerySet[Any], prompts: WorkspacePrompts, table: str) -> Iterator[Fault]:
    """Report the first ten rows whose prompt is not in the workspace; they are not part of any chain."""
    orphans = rows.exclude(prompt_id__in=list(prompts.by_id)) if prompts.by_id else rows
    for row_id in orphans.order_by("pk").values_list("id", flat=True)[:10]:
        yield Fault(table, f"{table} with the id {row_id}", "it belongs to no prompt of this workspace")


@contextmanager
def read_only_snapshot() -> Iterator[None]:
    """Run all queries of the `with` block on one snapshot (repeatable read, read only).

    Writers are not blocked.
    """
    if connection.in_atomic_block:
        # Already inside a transaction of the caller: its isolation level applies.
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
    """Open a deferred transaction on SQLite; unlike Django's own transactions, it takes no write lock."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
