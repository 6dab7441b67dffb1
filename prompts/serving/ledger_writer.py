"""Write ledger rows with group commit. Each process has one writer with one permanent connection."""

import os
from collections.abc import Sequence
from threading import Lock

from django.db import connection

from core.db.workspace_scope import all_workspaces
from prompts.serving.ledger_connection import (
    DatabaseTimeout,
    LedgerConnection,
    LedgerConnectionLost,
    LedgerWriteError,
    WrittenRows,
    open_ledger_connection,
)

# How many seconds a row waits in the queue. Equal to the timeout of the connection pool that pages use.
WAIT_TIMEOUT = 5.0
# Larger batches do not raise throughput, but make every row wait for the whole batch.
MAX_ROWS_PER_INSERT = 64


class PendingRow:
    """A ledger row that waits to be written, and the result of the write: a ledger id or a failure."""

    __slots__ = ("draft", "failure", "is_done", "is_leader", "ledger_id", "seal", "sql", "wakeup")

    def __init__(self, sql: str, draft: str, seal: str) -> None:
        self.sql, self.draft, self.seal = sql, draft, seal
        self.ledger_id: int | None = None
        self.failure = ""
        self.is_done = False
        # The waiting thread acquires this lock again. It is released when the row is written, or when the
        # waiting thread becomes the batch leader.
        self.wakeup = Lock()
        self.wakeup.acquire()
        self.is_leader = False

    def finish(self, ledger_id: int | None = None, failure: str = "") -> None:
        self.ledger_id, self.failure = ledger_id, failure
        self.is_done = True


class LedgerWriter:
    """Write ledger rows with group commit.

    Rows that arrive while an INSERT is running are written together by the next INSERT. An INSERT only
    contains rows that were queued before it started, so it checks key and label as they are after the
    request arrived. A caller returns only after its row is committed.

    There is no writer thread: one of the waiting threads, the batch leader, writes for all.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset all state. The connection is not closed: after a fork it belongs to the parent process."""
        self._connection: LedgerConnection | None = None
        self._lock = Lock()
        self._queue: list[PendingRow] = []
        # True while a batch leader is writing: only the leader uses the connection.
        self._has_leader = False

    def write(self, row: PendingRow) -> int | None:
        if not self._enqueue(row) and not row.wakeup.acquire(timeout=WAIT_TIMEOUT):
            self._withdraw(row)
            # The leader may have dequeued the row and may still write it. A ledger row whose prompt was not
            # served does no harm.
            raise LedgerWriteError("the line to the ledger is busy")
        if not row.is_done:
            try:
                while not row.is_done:
                    self._write_batch()
            finally:
                self._pass_leadership()
        if row.failure:
            raise LedgerWriteError(row.failure)
        return row.ledger_id

    def _enqueue(self, row: PendingRow) -> bool:
        """Queue the row; return whether this thread becomes the batch leader."""
        with self._lock:
            self._queue.append(row)
            is_leader, self._has_leader = not self._has_leader, True
        return is_leader

    def _withdraw(self, row: PendingRow) -> None:
        with self._lock:
            if row in self._queue:
                self._queue.remove(row)
        if row.is_leader:
            self._pass_leadership()

    def _pass_leadership(self) -> None:
        """Make the thread that has waited longest the next batch leader. The other threads keep waiting."""
        with self._lock:
            leader = self._queue[0] if self._queue else None
            self._has_leader = leader is not None
            if leader is not None:
                leader.is_leader = True
                leader.wakeup.release()

    def close(self) -> None:
        """Close the connection. Call this only while no row is being written."""
        self._close_connection()

    def _write_batch(self) -> None:
        """Write the next batch of queued rows, with one INSERT for all rows that have the same SQL."""
        batch: list[PendingRow] = []
        try:
            try:
                self._connection = self._connection or open_ledger_connection()
            finally:
                # Dequeue the batch even if connecting failed, so that its rows fail at once instead of
                # waiting for the timeout.
                batch = self._take_batch()
            for sql in dict.fromkeys([row.sql for row in batch]):
                self._insert_rows(sql, [row for row in batch if row.sql == sql])
        finally:
            for row in batch:
                row.wakeup.release()

    def _take_batch(self) -> list[PendingRow]:
        """Dequeue a batch of rows and mark them as failed.

        Writing a row replaces the mark. If an unexpected error interrupts the batch, no row stays pending.
        """
        with self._lock:
            batch = self._queue[:MAX_ROWS_PER_INSERT]
            del self._queue[:MAX_ROWS_PER_INSERT]
        for row in batch:
            row.finish(failure="the statement was not carried out")
        return batch

    def _insert_rows(self, sql: str, rows: Sequence[PendingRow]) -> None:
        try:
            assign_ledger_ids(rows, self._run_insert(sql, rows))
        except LedgerConnectionLost as error:
            self._close_connection()
            fail_pending_rows(rows, error)
        except LedgerWriteError as failure:
            fail_pending_rows(rows, failure)
            # Retry each row alone: one invalid row must not fail the others.
            for row in rows if len(rows) > 1 else ():
                self._insert_rows(sql, [row])

    def _run_insert(self, sql: str, rows: Sequence[PendingRow]) -> WrittenRows:
        drafts = f"[{','.join([row.draft for row in rows])}]"
        try:
            self._connection = self._connection or open_ledger_connection()
            return self._connection.run(sql, drafts)
        except LedgerConnectionLost as error:
            if isinstance(error, DatabaseTimeout):
                raise
            # Retry once on a new connection, because the server may have been restarted. If the first
            # attempt was committed before the connection broke, the rows are written twice.
            self._close_connection()
            self._connection = open_ledger_connection()
            return self._connection.run(sql, drafts)

    def _close_connection(self) -> None:
        open_connection, self._connection = self._connection, None
        if open_connection is not None:
            open_connection.close()


def assign_ledger_ids(rows: Sequence[PendingRow], written: WrittenRows) -> None:
    """Assign the new ids to the pending rows with the same seal.

    Rows with equal seals have equal values, so it does not matter which of them gets which id.
    """
    ids: dict[str, list[int]] = {}
    for ledger_id, seal in written:
        ids.setdefault(seal, []).append(ledger_id)
    for row in rows:
        row_ids = ids.get(row.seal)
        row.finish(row_ids.pop() if row_ids else None)


def fail_pending_rows(rows: Sequence[PendingRow], failure: LedgerWriteError) -> None:
    for row in rows:
        row.finish(failure=str(failure) or "no reason was given")


PROCESS_WRITER = LedgerWriter()
os.register_at_fork(after_in_child=PROCESS_WRITER.reset)


def write_ledger_row(sql: str, draft: str, seal: str) -> int | None:
    """Write a draft row and return its id; None if the conditions of the INSERT rejected it."""
    if connection.in_atomic_block:
        # Only in tests: the writer's connection would not see the uncommitted rows of the test's transaction.
        with all_workspaces(), connection.cursor() as cursor:
            cursor.execute(sql, [f"[{draft}]"])
            return next((int(row) for row, _ in cursor.fetchall()), None)
    return PROCESS_WRITER.write(PendingRow(sql, draft, seal))
