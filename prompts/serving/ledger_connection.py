"""A dedicated database connection for ledger rows.

For speed it uses no connection pool, no liveness check before each statement, and no Django cursor.
"""

import select
import sqlite3
import time
from typing import Any, Protocol

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db import Error as DatabaseFailure
from psycopg.pq import DiagnosticField, ExecStatus

from core.db.sqlite_backend.write_lock import begin_immediate
from core.db.workspace_scope import ALL_WORKSPACES, SCOPE_SETTING

# Id and seal (digest of the row's values) of each new ledger row.
WrittenRows = list[tuple[int, str]]
# In seconds. Equal to the database's own statement timeout, which does not help if the database does not
# respond at all.
RESPONSE_TIMEOUT = 5.0
# Plan each prepared statement once, with nested loops: its joins look up few rows by id. PostgreSQL plans it
# again only after an ANALYZE or a schema change.
PLAN_OPTIONS = (
    "-c plan_cache_mode=force_generic_plan -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off"
)
# One INSERT may write rows of several workspaces, so row-level security must allow all workspaces. The joins
# of the INSERT restrict each row to the workspace of its key or member.
SCOPE_OPTION = f"-c {SCOPE_SETTING}={ALL_WORKSPACES}"
# Prefixes of SQLSTATE codes after which a new connection may work: server shutdown, connection failure,
# missing prepared statement, outdated prepared statement.
BROKEN_SQLSTATES = ("57P", "08", "26", "0A")
SUCCESS_STATUSES = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


class LedgerWriteError(DatabaseFailure):
    """The database did not write the ledger rows."""


class LedgerConnectionLost(LedgerWriteError):
    """The connection is broken. The write may succeed on a new connection."""


class DatabaseTimeout(LedgerConnectionLost):
    """The database did not respond within RESPONSE_TIMEOUT. The write is not retried."""


class LedgerConnection(Protocol):
    """An autocommit connection: every statement is its own transaction.

    `run` executes an INSERT whose only parameter is `drafts`, a JSON list of rows.
    """

    def run(self, sql: str, drafts: str) -> WrittenRows: ...

    def close(self) -> None: ...


def open_ledger_connection() -> LedgerConnection:
    """Open a new connection to Django's default database."""
    return PostgresLedgerConnection() if connection.vendor == "postgresql" else SqliteLedgerConnection()


class PostgresLedgerConnection:
    """A PostgreSQL connection that calls libpq directly.

    Each distinct statement is prepared once and then executed by its name.
    """

    def __init__(self) -> None:
        try:
            self._connection: psycopg.Connection[Any] = psycopg.connect(
                autocommit=True, **get_libpq_parameters()
            )
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error
        self.pgconn = self._connection.pgconn
        self._statement_names: dict[str, bytes] = {}
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self.pgconn.socket, select.POLLIN)
        self._writable.register(self.pgconn.socket, select.POLLIN | select.POLLOUT)

    def run(self, sql: str, drafts: str) -> WrittenRows:
        try:
            name = self._statement_names.get(sql) or self._prepare(sql)
            self.pgconn.send_query_prepared(name, [drafts.encode()])
            return self._read_result()
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error

    def close(self) -> None:
        self._connection.close()

    def _prepare(self, sql: str) -> bytes:
        name = f"ledger{len(self._statement_names)}".encode()
        self.pgconn.send_prepare(name, sql.replace("%s", "$1").encode())
        self._read_result()
        self._statement_names[sql] = name
        return name

    def _read_result(self) -> WrittenRows:
        deadline = time.monotonic() + RESPONSE_TIMEOUT
        while self.pgconn.flush():
            self._wait(self._writable, deadline)
            self.pgconn.consume_input()
        written: WrittenRows = []
        while True:
            while self.pgconn.is_busy():
                self._wait(self._readable, deadline)
                self.pgconn.consume_input()
            result = self.pgconn.get_result()
            if result is None:
                return written
            if result.status not in SUCCESS_STATUSES:
                raise build_write_error(result)
            for index in range(result.ntuples):
                ledger_id, seal = result.get_value(index, 0), result.get_value(index, 1)
                written.append((int(ledger_id or 0), (seal or b"").decode()))

    def _wait(self, poll: select.poll, deadline: float) -> None:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1_000):
            raise DatabaseTimeout("the database does not answer")


def build_write_error(result: Any) -> LedgerWriteError:
    message = (result.error_message or b"").decode(errors="replace")
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"08000").decode()
    return LedgerConnectionLost(message) if state.startswith(BROKEN_SQLSTATES) else LedgerWriteError(message)


def get_libpq_parameters() -> dict[str, Any]:
    """Return Django's connection parameters with the planner and scope options added."""
    psycopg_only = {"cursor_factory", "context", "prepare_threshold"}
    parameters = {
        name: value for name, value in connection.get_connection_params().items() if name not in psycopg_only
    }
    return parameters | {"options": f"{parameters.get('options', '')} {PLAN_OPTIONS} {SCOPE_OPTION}".strip()}


class SqliteLedgerConnection:
    """A connection to the database file, opened with Django's parameters."""

    def __init__(self) -> None:
        wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        self._path = str(wrapper.settings_dict["NAME"])
        self._timeout: float = wrapper.settings_dict["OPTIONS"]["timeout"]
        try:
            self._file = wrapper.get_new_connection(wrapper.get_connection_params())
        except DatabaseFailure as error:
            raise LedgerConnectionLost(str(error)) from error
        # None means autocommit.
        self._file.isolation_level = None

    def run(self, sql: str, drafts: str) -> WrittenRows:
        try:
            begin_immediate(self._file, self._path, self._timeout)
            rows = self._file.execute(sql.replace("%s", "?"), (drafts,)).fetchall()
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise LedgerWriteError(str(error)) from error
        return [(int(row), seal) for row, seal in rows]

    def close(self) -> None:
        self._file.close()
