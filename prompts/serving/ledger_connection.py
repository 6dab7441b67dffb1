"""An open connection for ledger rows alone: no pool to ask, no look whether it still holds, no cursor."""

import select
import sqlite3
import time
from typing import Any, Protocol

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db import Error as DatabaseFailure
from psycopg.pq import DiagnosticField, ExecStatus

from core.db.workspace_scope import ALL_WORKSPACES, SCOPE_SETTING

# Ids of new rows, with their seals.
WrittenRows = list[tuple[int, str]]
# The database ends a statement after as long; this is for one that does not answer at all.
RESPONSE_TIMEOUT = 5.0
# The plan is made once, and anew when the database has counted its rows again: draft by draft, by ids.
PLAN_OPTIONS = (
    "-c plan_cache_mode=force_generic_plan -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off"
)
# A statement may hold rows of several workspaces; each row is held to its key's own by the joins.
SCOPE_OPTION = f"-c {SCOPE_SETTING}={ALL_WORKSPACES}"
# The server goes down, the connection is gone, or what was prepared on it is: another connection may do.
BROKEN_SQLSTATES = ("57P", "08", "26", "0A")
SUCCESS_STATUSES = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


class LedgerWriteError(DatabaseFailure):
    """The database would not write a row."""


class LedgerConnectionLost(LedgerWriteError):
    """The connection is of no use any more; a fresh one may be."""


class DatabaseTimeout(LedgerConnectionLost):
    """The database does not answer: whoever waited for it has waited long enough."""


class LedgerConnection(Protocol):
    """A connection on which every statement is its own transaction."""

    def run(self, sql: str, drafts: str) -> WrittenRows: ...

    def close(self) -> None: ...


def open_ledger_connection() -> LedgerConnection:
    """A new connection to the database that Django uses."""
    return PostgresLedgerConnection() if connection.vendor == "postgresql" else SqliteLedgerConnection()


class PostgresLedgerConnection:
    """Spoken to in libpq's own words: a statement is prepared once, then named."""

    def __init__(self) -> None:
        try:
            self._whole: psycopg.Connection[Any] = psycopg.connect(autocommit=True, **get_libpq_parameters())
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error
        self.wire = self._whole.pgconn
        self._names: dict[str, bytes] = {}
        self._heard, self._ready = select.poll(), select.poll()
        self._heard.register(self.wire.socket, select.POLLIN)
        self._ready.register(self.wire.socket, select.POLLIN | select.POLLOUT)

    def run(self, sql: str, drafts: str) -> WrittenRows:
        try:
            name = self._names.get(sql) or self._prepared(sql)
            self.wire.send_query_prepared(name, [drafts.encode()])
            return self._answer()
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error

    def close(self) -> None:
        self._whole.close()

    def _prepared(self, sql: str) -> bytes:
        name = f"ledger{len(self._names)}".encode()
        self.wire.send_prepare(name, sql.replace("%s", "$1").encode())
        self._answer()
        self._names[sql] = name
        return name

    def _answer(self) -> WrittenRows:
        until = time.monotonic() + RESPONSE_TIMEOUT
        while self.wire.flush():
            self._wait(self._ready, until)
            self.wire.consume_input()
        written: WrittenRows = []
        while True:
            while self.wire.is_busy():
                self._wait(self._heard, until)
                self.wire.consume_input()
            result = self.wire.get_result()
            if result is None:
                return written
            if result.status not in SUCCESS_STATUSES:
                raise build_write_error(result)
            for at in range(result.ntuples):
                said, seal = result.get_value(at, 0), result.get_value(at, 1)
                written.append((int(said or 0), (seal or b"").decode()))

    def _wait(self, poll: select.poll, until: float) -> None:
        if not poll.poll(max(0.0, until - time.monotonic()) * 1_000):
            raise DatabaseTimeout("the database does not answer")


def build_write_error(result: Any) -> LedgerWriteError:
    words = (result.error_message or b"").decode(errors="replace")
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"08000").decode()
    return LedgerConnectionLost(words) if state.startswith(BROKEN_SQLSTATES) else LedgerWriteError(words)


def get_libpq_parameters() -> dict[str, Any]:
    """Django's own, with plans of our choice."""
    own = {"cursor_factory", "context", "prepare_threshold"}
    said = {name: value for name, value in connection.get_connection_params().items() if name not in own}
    return said | {"options": f"{said.get('options', '')} {PLAN_OPTIONS} {SCOPE_OPTION}".strip()}


class SqliteLedgerConnection:
    """The file, opened as Django opens it."""

    def __init__(self) -> None:
        wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        try:
            self._file = wrapper.get_new_connection(wrapper.get_connection_params())
        except DatabaseFailure as error:
            raise LedgerConnectionLost(str(error)) from error
        # Every statement by itself.
        self._file.isolation_level = None

    def run(self, sql: str, drafts: str) -> WrittenRows:
        try:
            # All rows are taken: SQLite ends the statement, and so commits, only when there are no more.
            return [
                (int(row), seal)
                for row, seal in self._file.execute(sql.replace("%s", "?"), (drafts,)).fetchall()
            ]
        except sqlite3.Error as error:
            raise LedgerWriteError(str(error)) from error

    def close(self) -> None:
        self._file.close()
