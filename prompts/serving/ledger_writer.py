"""Write ledger rows with group commit. Each process has one writer with one permanent connection."""

import os
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread

import structlog

from prompts.serving.ledger_connection import (
    DatabaseTimeout,
    DistributedLedgerConnection,
    LedgerConnection,
    LedgerConnectionLost,
    LedgerWriteError,
    WrittenRows,
    open_ledger_connection,
)

log = structlog.get_logger(__name__)

# How many seconds a queued row waits. Equal to the timeout of the connection pool that pages use.
WAIT_TIMEOUT = 5.0
# Larger batches do not raise throughput, but make every row wait for the whole batch.
MAX_ROWS_PER_INSERT = 64


class PendingRow:
    """A ledger row that waits to be written, and the result of the write: a ledger id or a failure."""

    __slots__ = (
        *("call_sql", "draft", "failure", "is_withdrawn", "ledger_id"),
        *("seal", "sql", "wakeup", "workspace_id"),
    )

    def __init__(self, sql: str, draft: str, seal: str, *, call_sql: str = "", workspace_id: int = 0) -> None:
        self.sql, self.draft, self.seal = sql, draft, seal
        # The SQL function call that replaces the INSERT if the tables are distributed.
        self.call_sql, self.workspace_id = call_sql, workspace_id
        self.ledger_id: int | None = None
        # Replaced when the row is finished. This text stays if an unexpected error interrupts the batch.
        self.failure = "the statement was not executed"
        # True if the request has already failed because the row waited too long.
        self.is_withdrawn = False
        # The waiting thread blocks on this lock until the writer releases it, when the row is finished.
        self.wakeup = Lock()
        self.wakeup.acquire()

    def finish(self, ledger_id: int | None = None, failure: str = "") -> None:
        self.ledger_id, self.failure = ledger_id, failure


class LedgerWriter:
    """Write ledger rows with group commit.

    If nobody uses the connection, a caller writes its row itself. Otherwise the row is queued for the writer
    thread: rows that arrive while an INSERT is running are written together by the next INSERT. An INSERT
    only contains rows that were queued before it started, so it checks key and label as they are after the
    request arrived. A caller returns only after its row is committed.

    Without the thread, each batch would have to wait until the system wakes the caller that writes it.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset all state. The connection is not closed: after a fork it belongs to the parent process."""
        self._connection: LedgerConnection | None = None
        # Whether the last connection was to a distributed database.
        self.is_distributed = False
        # Held by the thread that uses the connection.
        self._connection_lock = Lock()
        # None ends the writer thread.
        self._queue: SimpleQueue[PendingRow | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._thread_lock = Lock()

    def write(self, row: PendingRow) -> int | None:
        if self._connection_lock.acquire(blocking=False):
            try:
                self._write_batch([row])
            finally:
                self._connection_lock.release()
        else:
            self._write_by_thread(row)
        if row.failure:
            raise LedgerWriteError(row.failure)
        return row.ledger_id

    def close(self) -> None:
        """End the thread and close the connection. Call this only while no row is being written."""
        with self._thread_lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._queue.put(None)
                thread.join()
        self._close_connection()

    def _write_by_thread(self, row: PendingRow) -> None:
        if self._thread is None:
            self._start_thread()
        self._queue.put(row)
        if not row.wakeup.acquire(timeout=WAIT_TIMEOUT):
            # The row may be part of a running INSERT, and may still be written. A ledger row whose prompt was
            # not served does no harm.
            row.is_withdrawn = True
            raise LedgerWriteError("the ledger connection is busy")

    def _start_thread(self) -> None:
        with self._thread_lock:
            if self._thread is None:
                # A daemon, so that the process does not wait for this thread when it ends.
                thread = Thread(target=self._write_queued_rows, name="ledger-writer", daemon=True)
                thread.start()
                self._thread = thread

    def _write_queued_rows(self) -> None:
        """Write batches until there is a None in the queue. An error fails its batch, not the thread."""
        while (row := self._queue.get()) is not None:
            batch = [row]
            try:
                with self._connection_lock:
                    batch += self._take_queued_rows(MAX_ROWS_PER_INSERT - 1)
                    self._write_batch([row for row in batch if not row.is_withdrawn])
            except Exception:
                log.exception("ledger_writer_failed")
            finally:
                for row in batch:
                    row.wakeup.release()

    def _take_queued_rows(self, maximum: int) -> list[PendingRow]:
        """Take the rows that are in the queue now."""
        rows: list[PendingRow] = []
        with suppress(Empty):
            while len(rows) < maximum:
                row = self._queue.get_nowait()
                if row is None:
                    # Put None back, so that the thread ends after this batch.
                    self._queue.put(None)
                    break
                rows.append(row)
        return rows

    def _write_batch(self, batch: Sequence[PendingRow]) -> None:
        """Write the rows, with one INSERT for all rows that have the same SQL."""
        try:
            for rows in self._group_rows(batch):
                self._insert_rows(rows[0].sql, rows)
        except BaseException:
            # The connection may be in the middle of a statement.
            self._close_connection()
            raise

    def _group_rows(self, batch: Sequence[PendingRow]) -> list[list[PendingRow]]:
        """Group rows by SQL, and in a distributed database also by workspace."""
        groups: dict[tuple[str, int], list[PendingRow]] = {}
        for row in batch:
            groups.setdefault((row.sql, row.workspace_id if self.is_distributed else 0), []).append(row)
        return list(groups.values())

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
        try:
            return self._execute(sql, rows)
        except LedgerConnectionLost as error:
            if isinstance(error, DatabaseTimeout):
                raise
            # Retry once on a new connection, because the server may have been restarted. If the first
            # attempt was committed before the connection broke, the rows are written twice.
            self._close_connection()
            return self._execute(sql, rows)

    def _execute(self, sql: str, rows: Sequence[PendingRow]) -> WrittenRows:
        if self._connection is None:
            self._connection = open_ledger_connection()
            self.is_distributed = isinstance(self._connection, DistributedLedgerConnection)
        if not isinstance(self._connection, DistributedLedgerConnection):
            return self._connection.run(sql, f"[{','.join([row.draft for row in rows])}]")
        written: WrittenRows = []
        # There are several workspaces only in the first batch, before the type of the connection is known.
        for workspace_id in dict.fromkeys([row.workspace_id for row in rows]):
            drafts = [row.draft for row in rows if row.workspace_id == workspace_id]
            written += self._connection.call(rows[0].call_sql, workspace_id, drafts)
        return written

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
# Used if the tables are distributed: a call takes longer, because a Citus worker runs it, so several writers
# work in parallel. All rows of a workspace are written by the same writer.
DISTRIBUTED_WRITERS = tuple(LedgerWriter() for _ in range(4))
for each in (PROCESS_WRITER, *DISTRIBUTED_WRITERS):
    os.register_at_fork(after_in_child=each.reset)


def choose_writer(row: PendingRow) -> LedgerWriter:
    if PROCESS_WRITER.is_distributed:
        return DISTRIBUTED_WRITERS[row.workspace_id % len(DISTRIBUTED_WRITERS)]
    return PROCESS_WRITER


def close_writers() -> None:
    """Close the connections of all writers. Call this only while no row is being written."""
    for writer in (PROCESS_WRITER, *DISTRIBUTED_WRITERS):
        writer.close()


def write_ledger_row(row: PendingRow) -> int | None:
    """Write a draft row and return its id; None if the conditions of the INSERT rejected it."""
    return choose_writer(row).write(row)
