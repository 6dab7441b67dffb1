"""A dedicated database connection for ledger rows.

For speed it uses no connection pool, no liveness check before each statement, and no Django cursor. Behind a
pooler such as PgBouncer it sets its options in the transaction of each statement, otherwise at the start.
"""

import select
import sqlite3
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Protocol

import psycopg
import structlog
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db import Error as DatabaseFailure
from psycopg.pq import DiagnosticField, ExecStatus

from core.db.sqlite_backend.write_lock import begin_immediate
from core.db.workspace_scope import ALL_WORKSPACES, SCOPE_SETTING

log = structlog.get_logger(__name__)

# Id and seal (digest of the row's values) of each new ledger row.
WrittenRows = list[tuple[int, str]]
# The first two columns of a row as libpq returns them.
ResultRow = tuple[bytes | None, bytes | None]
# In seconds. Equal to the database's own statement timeout, which does not help if the database does not
# respond at all.
RESPONSE_TIMEOUT = 5.0
# Plan each prepared statement once, with nested loops: its joins look up few rows by id. PostgreSQL plans it
# again only after an ANALYZE or a schema change.
PLAN_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
# One INSERT may write rows of several workspaces, so row-level security must allow all workspaces. The joins
# of the INSERT restrict each row to the workspace of its key or member.
CONNECTION_SETTINGS = {**PLAN_SETTINGS, SCOPE_SETTING: ALL_WORKSPACES}
STARTUP_OPTIONS = " ".join(f"-c {name}={value}" for name, value in CONNECTION_SETTINGS.items())
# Behind a pooler the statement is planned each time. The planner then keeps the order of the joins, each of
# which looks up rows by an index: this halves the time of the statement.
POOLED_SETTINGS = {**CONNECTION_SETTINGS, "join_collapse_limit": "1"}
# Has the same effect as SET LOCAL for each of these settings.
SET_LOCAL_SQL = "SELECT " + ", ".join(
    f"set_config('{name}', '{value}', true)" for name, value in POOLED_SETTINGS.items()
)
# Returns the scope of the connection, and whether row-level security restricts its role.
CHECK_SCOPE_SQL = (
    f"SELECT current_setting('{SCOPE_SETTING}', true), row_security_active('prompts_ledgerentry')"
)
SCOPE_MISSING_MESSAGE = (
    "The ledger connection has no workspace scope, so row-level security hides all rows from it: startup "
    "options do not reach the database. If a pooler such as PgBouncer is in front of it, name the pooler in "
    "DATABASE_POOLED_URL and the database itself in DATABASE_URL."
)
# Also requires Citus: a restored backup of a distributed database may have the function without it.
FETCH_FUNCTION_SQL = """
SELECT 1, 1 FROM pg_proc p, pg_extension e WHERE p.proname = 'record_fetch' AND e.extname = 'citus'
"""
NEXT_IDS_SQL = """
SELECT nextval(pg_get_serial_sequence('prompts_ledgerentry', 'id')), NULL FROM generate_series(1, %s::integer)
"""
# Prefixes of SQLSTATE codes after which a new connection may work: server shutdown, connection failure,
# outdated prepared statement.
BROKEN_SQLSTATES = ("57P", "08", "0A")
# The prepared statement does not exist, or exists already: a pooler uses several server connections.
UNPREPARED_SQLSTATES = ("26000", "42P05")
SUCCESS_STATUSES = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


class LedgerWriteError(DatabaseFailure):
    """The database did not write the ledger rows."""


class LedgerConnectionLost(LedgerWriteError):
    """The connection is broken. The write may succeed on a new connection."""


class DatabaseTimeout(LedgerConnectionLost):
    """The database did not respond within RESPONSE_TIMEOUT. The write is not retried."""


class LedgerScopeMissing(LedgerConnectionLost):
    """Row-level security restricts the role, and the connection has no workspace scope."""

    def __init__(self) -> None:
        super().__init__(SCOPE_MISSING_MESSAGE)


class StatementNotPrepared(LedgerWriteError):
    """The server does not have the prepared statement, or has it already. Nothing was executed."""


class LedgerConnection(Protocol):
    """An autocommit connection: every statement is its own transaction.

    `run` executes an INSERT whose only parameter is `drafts`, a JSON list of rows.
    """

    def run(self, sql: str, drafts: str) -> WrittenRows: ...

    def close(self) -> None: ...


def open_ledger_connection() -> LedgerConnection:
    """Open a new connection to Django's default database."""
    if connection.vendor != "postgresql":
        return SqliteLedgerConnection()
    opened = PooledLedgerConnection() if is_pooled() else PostgresLedgerConnection()
    if not opened.has_fetch_function():
        return opened
    opened.close()
    return DistributedLedgerConnection()


def is_pooled() -> bool:
    """Return whether there is a pooler between this process and the database."""
    return connection.settings_dict.get("DIRECT") is not None


class PostgresLedgerConnection:
    """A PostgreSQL connection that calls libpq directly.

    Each distinct statement is prepared once and then executed by its name, which is a digest of its SQL: if
    a pooler shares server connections in spite of the settings, a name cannot mean another statement.
    """

    def __init__(self) -> None:
        try:
            self._connection: psycopg.Connection[Any] = psycopg.connect(
                autocommit=True, **self._get_parameters()
            )
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error
        self.pgconn = self._connection.pgconn
        self._statement_names: dict[str, bytes] = {}
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self.pgconn.socket, select.POLLIN)
        self._writable.register(self.pgconn.socket, select.POLLIN | select.POLLOUT)
        try:
            self._require_scope()
        except BaseException:
            self.close()
            raise

    def run(self, sql: str, drafts: str) -> WrittenRows:
        values = self._execute(sql, drafts)
        return [(int(ledger_id or 0), (seal or b"").decode()) for ledger_id, seal in values]

    def close(self) -> None:
        self._connection.close()

    def has_fetch_function(self) -> bool:
        """Return whether the tables are distributed: `manage.py distribute` has created the function."""
        try:
            return bool(self._execute_unnamed(FETCH_FUNCTION_SQL))
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error

    def _get_parameters(self) -> dict[str, Any]:
        return get_libpq_parameters()

    def _require_scope(self) -> None:
        """Check that the settings have reached the server: a pooler may drop startup options."""
        try:
            (scope, is_restricted), *_ = self._execute_unnamed(CHECK_SCOPE_SQL)
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error
        if is_restricted == b"t" and scope != ALL_WORKSPACES.encode():
            raise LedgerScopeMissing

    def _execute(self, sql: str, drafts: str) -> list[ResultRow]:
        try:
            try:
                return self._execute_prepared(sql, drafts)
            except StatementNotPrepared as error:
                self._statement_names.pop(sql, None)
                log.warning("ledger_statement_not_prepared", reason=str(error).strip())
                return self._execute_unnamed(sql, drafts)
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error

    def _execute_prepared(self, sql: str, drafts: str) -> list[ResultRow]:
        return self._execute_named(self._statement_names.get(sql) or self._prepare(sql), drafts)

    def _prepare(self, sql: str) -> bytes:
        name = build_statement_name(sql)
        self.pgconn.send_prepare(name, convert_placeholder(sql))
        self._read_result()
        self._statement_names[sql] = name
        return name

    def _execute_named(self, name: bytes, drafts: str) -> list[ResultRow]:
        self.pgconn.send_query_prepared(name, [drafts.encode()])
        return self._read_result()

    def _execute_unnamed(self, sql: str, *parameters: str) -> list[ResultRow]:
        self.pgconn.send_query_params(convert_placeholder(sql), encode_parameters(parameters))
        return self._read_result()

    def _read_result(self) -> list[ResultRow]:
        """Read the results of a statement to their end, so that the connection can be used after an error."""
        rows: list[ResultRow] = []
        failure: LedgerWriteError | None = None
        deadline = time.monotonic() + RESPONSE_TIMEOUT
        self._flush(deadline)
        while (result := self._read_next(deadline)) is not None:
            if result.status not in SUCCESS_STATUSES:
                failure = failure or build_write_error(result)
            rows += get_rows(result)
        if failure is not None:
            raise failure
        return rows

    def _flush(self, deadline: float) -> None:
        while self.pgconn.flush():
            self._wait(self._writable, deadline)
            self.pgconn.consume_input()

    def _read_next(self, deadline: float) -> Any:
        while self.pgconn.is_busy():
            self._wait(self._readable, deadline)
            self.pgconn.consume_input()
        return self.pgconn.get_result()

    def _wait(self, poll: select.poll, deadline: float) -> None:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1_000):
            raise DatabaseTimeout("the database does not answer")


class PooledLedgerConnection(PostgresLedgerConnection):
    """A connection through a pooler in transaction mode.

    The settings and the statement are one pipeline: one round trip, and one transaction, which ends with the
    pipeline. So the settings are those of the transaction, and no other client of the pooler gets them.
    """

    def __init__(self) -> None:
        self._uses_names = bool(connection.settings_dict.get("POOLER_PREPARES"))
        super().__init__()

    def _get_parameters(self) -> dict[str, Any]:
        return get_pooled_parameters()

    def _execute_prepared(self, sql: str, drafts: str) -> list[ResultRow]:
        if not self._uses_names:
            return self._execute_unnamed(sql, drafts)
        try:
            return super()._execute_prepared(sql, drafts)
        except StatementNotPrepared:
            # This pooler does not support prepared statements.
            self._uses_names = False
            raise

    def _execute_named(self, name: bytes, drafts: str) -> list[ResultRow]:
        self._start_pipeline()
        self.pgconn.send_query_prepared(name, [drafts.encode()])
        return self._finish_pipeline()

    def _execute_unnamed(self, sql: str, *parameters: str) -> list[ResultRow]:
        self._start_pipeline()
        self.pgconn.send_query_params(convert_placeholder(sql), encode_parameters(parameters))
        return self._finish_pipeline()

    def _start_pipeline(self) -> None:
        self.pgconn.enter_pipeline_mode()
        self.pgconn.send_query_params(SET_LOCAL_SQL.encode(), None)

    def _finish_pipeline(self) -> list[ResultRow]:
        """Read the rows of the last statement. The transaction is committed when the pipeline has ended."""
        rows: list[ResultRow] = []
        failure: LedgerWriteError | None = None
        self.pgconn.pipeline_sync()
        deadline = time.monotonic() + RESPONSE_TIMEOUT
        self._flush(deadline)
        # None ends the results of one statement. A second None means that the connection is lost.
        while (result := self._read_next(deadline) or self._read_next(deadline)) is not None:
            if result.status == ExecStatus.PIPELINE_SYNC:
                break
            if result.status in SUCCESS_STATUSES:
                rows = get_rows(result)
            elif result.status != ExecStatus.PIPELINE_ABORTED:
                failure = failure or build_write_error(result)
        else:
            raise LedgerConnectionLost("the connection was closed")
        self.pgconn.exit_pipeline_mode()
        if failure is not None:
            raise failure
        return rows


class DistributedLedgerConnection(PostgresLedgerConnection):
    """A connection to the coordinator of Citus, which records fetches with a function on the workers.

    The function sets the scope of row-level security itself. A call is its own transaction, and not prepared:
    in a transaction, or with a generic plan, Citus would run the function on the coordinator.
    """

    def call(self, sql: str, workspace_id: int, drafts: Sequence[str]) -> WrittenRows:
        """Record the fetches of one workspace. `sql` is the call, with workspace and drafts as parameters."""
        try:
            # Take the ids right before the rows are written, not in advance: sealing expects that a row is
            # visible soon after its id was taken (SETTLE_DELAY).
            ids = [number or b"" for number, _ in self._execute_unnamed(NEXT_IDS_SQL, str(len(drafts)))]
            rows = ",".join(
                f'{{"id":{number.decode()},{draft[1:]}' for number, draft in zip(ids, drafts, strict=True)
            )
            written = self._execute_unnamed(sql, str(workspace_id), f"[{rows}]")
        except psycopg.Error as error:
            raise LedgerConnectionLost(str(error)) from error
        return [(int(ledger_id or 0), (seal or b"").decode()) for ledger_id, seal in written]

    def _get_parameters(self) -> dict[str, Any]:
        return get_pooled_parameters()

    def _require_scope(self) -> None:
        """Check nothing: the function sets the scope."""


def build_statement_name(sql: str) -> bytes:
    return b"ledger_" + sha256(sql.encode()).hexdigest()[:32].encode()


def convert_placeholder(sql: str) -> bytes:
    return sql.replace("%s", "$1").encode()


def encode_parameters(parameters: tuple[str, ...]) -> list[bytes] | None:
    return [parameter.encode() for parameter in parameters] or None


def get_rows(result: Any) -> list[ResultRow]:
    return [(result.get_value(index, 0), result.get_value(index, 1)) for index in range(result.ntuples)]


def build_write_error(result: Any) -> LedgerWriteError:
    message = (result.error_message or b"").decode(errors="replace")
    state = (result.error_field(DiagnosticField.SQLSTATE) or b"08000").decode()
    if state in UNPREPARED_SQLSTATES:
        return StatementNotPrepared(message)
    return LedgerConnectionLost(message) if state.startswith(BROKEN_SQLSTATES) else LedgerWriteError(message)


def get_libpq_parameters() -> dict[str, Any]:
    """Return Django's connection parameters with the planner and scope options added."""
    parameters = get_pooled_parameters()
    return parameters | {"options": f"{parameters.get('options', '')} {STARTUP_OPTIONS}".strip()}


def get_pooled_parameters() -> dict[str, Any]:
    """Return Django's connection parameters, without those that are for psycopg."""
    psycopg_only = {"cursor_factory", "context", "prepare_threshold"}
    return {
        name: value for name, value in connection.get_connection_params().items() if name not in psycopg_only
    }


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
