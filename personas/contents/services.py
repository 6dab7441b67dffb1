"""Store contents (bytes): with salted digests if they may be erased, otherwise under their SHA-256."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from django.db import DatabaseError, connection
from django.utils import timezone

from core.db.fast import Rows, Statement, WriteBatch, execute_together
from personas.models import Content, Workspace

# First key of the advisory lock of a workspace's contents; the second is the workspace id.
CONTENTS_LOCK = 1_703
# Maximum number of digests per query, because SQLite limits the number of parameters.
CHUNK_SIZE = 5_000
ROWS_PER_INSERT = 1_000
INSERT_SQL = (
    "INSERT INTO personas_content (workspace_id, digest, size, data, salt, plain_digest, created_at) "
    "VALUES {values} ON CONFLICT DO NOTHING RETURNING digest"
)
FIND_SQL = (
    "SELECT plain_digest, digest, salt FROM personas_content "
    "WHERE workspace_id = %s AND plain_digest {condition}"
)
ROW_SQL = "(%s, %s, %s, %s, %s, %s, %s)"


class SaltedDigest(NamedTuple):
    """The digest under which a content is stored, and its salt."""

    digest: str
    salt: str


class ContentsConflict(DatabaseError):
    """A concurrent transaction stored the same contents first. The transaction must be repeated."""


class SaltedDigests:
    """The salted digests of contents by their plain SHA-256, as far as they were looked up or stored.

    Use an object within one transaction only.

    Equal data has one salted digest per workspace until it is erased. After that, the same data gets a new
    salt and so another digest: what refers to the erased content stays without text.
    """

    def __init__(self, workspace: Workspace | int) -> None:
        self.workspace_id = workspace if isinstance(workspace, int) else workspace.pk
        self.by_plain: dict[str, SaltedDigest] = {}
        self.missing: set[str] = set()
        self.is_locked = False

    def find(self, plain_digests: Iterable[str]) -> None:
        """Look up the contents that have these plain digests."""
        self._find(plain_digests, [])

    def lock_and_find(self, plain_digests: Iterable[str], first: Sequence[Statement] = ()) -> list[Rows]:
        """Look up contents, so that rows may refer to them.

        Until the end of the transaction, retention deletes no content of the workspace. The statements in
        `first` are sent before, in the same round trip; return their rows.
        """
        locks = [] if self.is_locked else build_lock(self.workspace_id, is_shared=True)
        self.is_locked = True
        return self._find(plain_digests, [*first, *locks])[: len(first)]

    def _find(self, plain_digests: Iterable[str], first: Sequence[Statement]) -> list[Rows]:
        unknown = {digest for digest in plain_digests if digest not in self.by_plain} - self.missing
        statements = list(first)
        statements += [build_find(self.workspace_id, chunk) for chunk in split_digests(unknown)]
        results = execute_together(statements)
        for rows in results[len(first) :]:
            for plain, digest, salt in rows:
                self.by_plain[plain] = SaltedDigest(digest, salt or "")
        self.missing |= unknown - self.by_plain.keys()
        return results[: len(first)]

    def store(self, data: Mapping[str, bytes]) -> None:
        """Store contents, given by their plain digest. Those that the workspace already has are skipped.

        Call it in the transaction that also writes what refers to the contents.
        """
        self.store_with_lists(data, dict)

    def store_with_lists(
        self,
        data: Mapping[str, bytes],
        build_lists: Callable[[], Mapping[str, bytes]],
        batch: WriteBatch | None = None,
    ) -> None:
        """Store contents as `store` does, and contents that name them, with one INSERT for both.

        `build_lists` returns the latter by their SHA-256. They contain digests, so they are built when the
        digests are known. If a concurrent transaction stored the same data first, they are built again.

        With `batch`, the contents are stored when the batch is sent. That raises ContentsConflict if a
        concurrent transaction stored the same data first.
        """
        self.lock_and_find(data)
        new = {plain: self._assign_salt(plain, data[plain]) for plain in sorted(self.missing & data.keys())}
        self.missing -= new.keys()
        if batch is not None:
            lists = [build_content(self.workspace_id, digest, one) for digest, one in build_lists().items()]
            for chunk in split_rows([*new.values(), *lists]):
                salted = {row.digest for row in chunk if row.salt}
                batch.add_statement(build_insert(chunk), partial(check_all_stored, salted))
            return
        while True:
            lists = [build_content(self.workspace_id, digest, one) for digest, one in build_lists().items()]
            rows = [*new.values(), *lists]
            stored = insert_contents(rows) if rows else set()
            lost = {plain for plain, row in new.items() if row.digest not in stored}
            if not lost:
                return
            # Another transaction stored these first. It is committed by now: the INSERT waited for it.
            new = {}
            for plain in lost:
                del self.by_plain[plain]
            self.lock_and_find(lost)

    def _assign_salt(self, plain_digest: str, data: bytes) -> Content:
        row = Content.build_salted(self.workspace_id, plain_digest, data)
        self.by_plain[plain_digest] = SaltedDigest(row.digest, row.salt or "")
        return row


def build_content(workspace_id: int, digest: str, data: bytes) -> Content:
    return Content(workspace_id=workspace_id, digest=digest, size=len(data), data=data)


def store_contents(workspace: Workspace | int, data: Mapping[str, bytes]) -> None:
    """Store contents without erasable text, given by their SHA-256. Existing ones are skipped.

    Call it in the transaction that also writes what refers to the contents. Until its end, retention deletes
    no content of the workspace.
    """
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    lock_contents(workspace_id, is_shared=True)
    if data:
        insert_contents([build_content(workspace_id, digest, one) for digest, one in data.items()])


def insert_contents(rows: Sequence[Content]) -> set[str]:
    """Insert the rows whose digest and plain digest are not stored yet; return their digests.

    One statement for all rows: bulk_create with ignored conflicts does not tell which rows were inserted.
    """
    results = execute_together([build_insert(chunk) for chunk in split_rows(rows)])
    return {digest for result in results for (digest,) in result}


def split_rows(rows: Sequence[Content]) -> Iterator[Sequence[Content]]:
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_PER_INSERT)):
        yield chunk


def build_insert(rows: Sequence[Content]) -> Statement:
    """Build an INSERT that skips stored contents and returns the digests of the others."""
    now: Any = connection.ops.adapt_datetimefield_value(timezone.now())
    params = [
        value
        for row in rows
        for value in (row.workspace_id, row.digest, row.size, row.data, row.salt, row.plain_digest, now)
    ]
    return INSERT_SQL.format(values=", ".join([ROW_SQL] * len(rows))), params


def build_find(workspace_id: int, digests: Sequence[str]) -> Statement:
    """Build the statement that looks up contents. On PostgreSQL it is the same for any number of digests."""
    if connection.vendor == "postgresql":
        # Pass the digests as one string: psycopg takes longer to convert a list than the query takes.
        return FIND_SQL.format(condition="= ANY(string_to_array(%s, ','))"), [workspace_id, ",".join(digests)]
    return FIND_SQL.format(condition=f"IN ({', '.join(['%s'] * len(digests))})"), [workspace_id, *digests]


def check_all_stored(digests: set[str], stored: Rows) -> None:
    if not digests <= {digest for (digest,) in stored}:
        raise ContentsConflict("The same contents were stored by another transaction.")


def split_digests(digests: Iterable[str]) -> Iterator[Sequence[str]]:
    remaining = iter(sorted(digests))
    while chunk := list(islice(remaining, CHUNK_SIZE)):
        yield chunk


def lock_contents(workspace_id: int, *, is_shared: bool) -> None:
    """Take the advisory lock of a workspace's contents until the end of the transaction.

    Those who store contents share the lock; retention takes it alone. So no content is deleted between the
    check that it exists and the commit of what refers to it. SQLite runs one writer at a time instead.
    """
    execute_together(build_lock(workspace_id, is_shared=is_shared))


def build_lock(workspace_id: int, *, is_shared: bool) -> list[Statement]:
    """Build the statement of the lock; SQLite has none."""
    if connection.vendor != "postgresql":
        return []
    function = "pg_advisory_xact_lock_shared" if is_shared else "pg_advisory_xact_lock"
    return [(f"SELECT {function}(%s::int, %s::int)", [CONTENTS_LOCK, workspace_id % 2**31])]
