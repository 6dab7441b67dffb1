"""The process's own way to the ledger: a connection kept open, and one statement for all who wait for it."""

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

# As long as the pool lets a page wait for a connection.
WAIT_TIMEOUT = 5.0
# More rows in one statement gain nothing, and the last of them would wait for all.
MAX_ROWS_PER_INSERT = 64


class PendingRow:
    """One row that waits to be written, and what became of it."""

    __slots__ = ("bell", "draft", "failure", "is_done", "is_next", "ledger_id", "seal", "sql")

    def __init__(self, sql: str, draft: str, seal: str) -> None:
        self.sql, self.draft, self.seal = sql, draft, seal
        self.ledger_id: int | None = None
        self.failure = ""
        self.is_done = False
        # Rung when it is done, or when it is this one's turn to write for all.
        self.bell = Lock()
        self.bell.acquire()
        self.is_next = False

    def end(self, ledger_id: int | None = None, failure: str = "") -> None:
        self.ledger_id, self.failure = ledger_id, failure
        self.is_done = True


class LedgerWriter:
    """Whoever comes while a statement runs waits, and goes with all others who waited in the next one.

    Every row is in a statement that began after its ticket was made, so nothing is checked too early; and
    nobody is told of a row before the statement, which is its own transaction, has ended.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """As new, without a word to the database: what a child does with its parent's connection."""
        self._link: LedgerConnection | None = None
        self._guard = Lock()
        self._waiting: list[PendingRow] = []
        # Somebody writes for all; nobody else touches the connection.
        self._is_busy = False

    def write(self, ticket: PendingRow) -> int | None:
        if not self._is_first(ticket) and not ticket.bell.acquire(timeout=WAIT_TIMEOUT):
            self._leave(ticket)
            # Perhaps it is written yet: a row that nobody was told of does no harm.
            raise LedgerWriteError("the line to the ledger is busy")
        if not ticket.is_done:
            try:
                while not ticket.is_done:
                    self._carry_out()
            finally:
                self._hand_over()
        if ticket.failure:
            raise LedgerWriteError(ticket.failure)
        return ticket.ledger_id

    def _is_first(self, ticket: PendingRow) -> bool:
        """Whether the line was free, and is now this one's to use."""
        with self._guard:
            self._waiting.append(ticket)
            is_first, self._is_busy = not self._is_busy, True
        return is_first

    def _leave(self, ticket: PendingRow) -> None:
        with self._guard:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        if ticket.is_next:
            self._hand_over()

    def _hand_over(self) -> None:
        """To whoever waits longest; each of the others sleeps until it is written."""
        with self._guard:
            follower = self._waiting[0] if self._waiting else None
            self._is_busy = follower is not None
            if follower is not None:
                follower.is_next = True
                follower.bell.release()

    def close(self) -> None:
        """For when nobody asks any more."""
        self._drop()

    def _carry_out(self) -> None:
        """One statement for all who wait; those who ask for different things need one for each kind."""
        batch: list[PendingRow] = []
        try:
            try:
                self._link = self._link or open_ledger_connection()
            finally:
                # Whoever waits now waited for this connection, and shares its failure.
                batch = self._taken()
            for sql in dict.fromkeys([ticket.sql for ticket in batch]):
                self._write_together(sql, [ticket for ticket in batch if ticket.sql == sql])
        finally:
            for ticket in batch:
                ticket.bell.release()

    def _taken(self) -> list[PendingRow]:
        """Those who wait, each with a failure until it is written: no way out of here forgets one."""
        with self._guard:
            batch = self._waiting[:MAX_ROWS_PER_INSERT]
            del self._waiting[:MAX_ROWS_PER_INSERT]
        for ticket in batch:
            ticket.end(failure="the statement was not carried out")
        return batch

    def _write_together(self, sql: str, tickets: Sequence[PendingRow]) -> None:
        try:
            assign_ledger_ids(tickets, self._run(sql, tickets))
        except LedgerConnectionLost as broken:
            self._drop()
            fail_pending_rows(tickets, broken)
        except LedgerWriteError as failure:
            fail_pending_rows(tickets, failure)
            # One row that cannot be written must not keep the others out.
            for ticket in tickets if len(tickets) > 1 else ():
                self._write_together(sql, [ticket])

    def _run(self, sql: str, tickets: Sequence[PendingRow]) -> WrittenRows:
        drafts = f"[{','.join([ticket.draft for ticket in tickets])}]"
        try:
            self._link = self._link or open_ledger_connection()
            return self._link.run(sql, drafts)
        except LedgerConnectionLost as broken:
            if isinstance(broken, DatabaseTimeout):
                raise
            # The server may have been restarted since; what it wrote and did not say is there twice at worst.
            self._drop()
            self._link = open_ledger_connection()
            return self._link.run(sql, drafts)

    def _drop(self) -> None:
        held, self._link = self._link, None
        if held is not None:
            held.close()


def assign_ledger_ids(tickets: Sequence[PendingRow], written: WrittenRows) -> None:
    """To each its row. Equal seals are of equal rows, so that it does not matter who gets which."""
    ids: dict[str, list[int]] = {}
    for ledger_id, seal in written:
        ids.setdefault(seal, []).append(ledger_id)
    for ticket in tickets:
        mine = ids.get(ticket.seal)
        ticket.end(mine.pop() if mine else None)


def fail_pending_rows(tickets: Sequence[PendingRow], failure: LedgerWriteError) -> None:
    for ticket in tickets:
        ticket.end(failure=str(failure) or "no reason was given")


PROCESS_WRITER = LedgerWriter()
os.register_at_fork(after_in_child=PROCESS_WRITER.forget)


def write_ledger_row(sql: str, draft: str, seal: str) -> int | None:
    """The id of the row that the draft became; None if the statement let none in."""
    if connection.in_atomic_block:
        # Only ever a test's own transaction: nobody else sees what it has written.
        with all_workspaces(), connection.cursor() as cursor:
            cursor.execute(sql, [f"[{draft}]"])
            return next((int(row) for row, _ in cursor.fetchall()), None)
    return PROCESS_WRITER.write(PendingRow(sql, draft, seal))
