"""Pipelines of statements in libpq's pipeline mode.

psycopg's own pipeline waits for the socket and sends at each statement. This one sends all statements with
one call, reads all results after that, and uses one set of adapters for them.
"""

import re
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import Any

from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import fetch_many, send
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

from project.database.postgresql.prepared_statements import (
    PreparedStatements,
    StatementKey,
    build_name,
    get_prepared_statements,
)

PLACEHOLDER = re.compile("%[s%]")
# How many converted statements are cached. A statement with a list has one form per length of the list.
MAX_CONVERTED = 1_000
# A call of libpq, and the function that is given its result.
Command = tuple[Callable[[], None], Callable[[Any], None]]
SUCCESS_STATUSES = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY}


@lru_cache(MAX_CONVERTED)
def convert_placeholders(query: str) -> bytes:
    """Convert `%s` to `$1`, `$2` and so on, and `%%` to `%`."""
    numbers = count(1)
    return PLACEHOLDER.sub(lambda match: f"${next(numbers)}" if match[0] == "%s" else "%", query).encode()


class PipelineCursor:
    """One statement of a pipeline. Its rows can be fetched when the pipeline has been sent."""

    def __init__(self, pipeline: "StatementPipeline") -> None:
        self.pipeline = pipeline
        self.result: Any = None

    def execute(self, query: str, params: Sequence[Any] | None = None) -> "PipelineCursor":
        self.pipeline.add(query, params, self.set_result)
        return self

    def set_result(self, result: Any) -> None:
        self.result = result

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.pipeline.load_rows(self.result)


class StatementPipeline:
    """Statements of one transaction that are sent together. Those that are sent often are prepared."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.transformer = Transformer(raw)
        self.prepared: PreparedStatements = get_prepared_statements(raw)
        self.commands: list[Command] = []
        # Statements that this pipeline prepares.
        self.new_names: dict[StatementKey, bytes] = {}

    def create_cursor(self) -> PipelineCursor:
        return PipelineCursor(self)

    def add(self, sql: str, params: Sequence[Any] | None, read_result: Callable[[Any], None]) -> None:
        pgconn, transformer = self.raw.pgconn, self.transformer
        if params is None:
            self.add_command(pgconn.send_query_params, sql.encode(), None, read_result=read_result)
            return
        query = convert_placeholders(sql)
        values = transformer.dump_sequence(params, [PyFormat.AUTO] * len(params))
        types, formats = transformer.types or (), transformer.formats
        key = (query, types)
        name = self.prepared.find_name(key) or self.new_names.get(key)
        if name is None and self.prepared.count_execution(key):
            name = self.new_names[key] = build_name(query, types)
            self.add_command(
                partial(pgconn.send_prepare, name, query, param_types=types),
                read_result=lambda _result: self.prepared.add(key, name),
            )
        if name is None:
            self.add_command(
                partial(pgconn.send_query_params, query, values, param_types=types, param_formats=formats),
                read_result=read_result,
            )
        else:
            self.add_command(
                partial(pgconn.send_query_prepared, name, values, param_formats=formats),
                read_result=read_result,
            )

    def add_command(
        self, function: Callable[..., None], *args: Any, read_result: Callable[[Any], None] | None = None
    ) -> None:
        self.commands.append((partial(function, *args), read_result or ignore_result))

    def send(self, first: Sequence[str] = (), last: Sequence[str] = ()) -> None:
        """Send the statements and read their results. Raise the error of the first one that fails.

        The server does not execute those after it. A transaction is begun if the connection has none, unless
        it is in autocommit mode. `first` and `last` are statements without rows, before and after the others.
        """
        raw, pgconn = self.raw, self.raw.pgconn
        with raw.lock:
            is_idle = pgconn.transaction_status == TransactionStatus.IDLE
            begin = ["BEGIN"] if is_idle and not raw.autocommit else []
            plain = [partial(pgconn.send_query_params, sql.encode(), None) for sql in [*begin, *first]]
            plain += [partial(pgconn.send_close_prepared, name) for name in self.prepared.take_surplus()]
            end = [partial(pgconn.send_query_params, sql.encode(), None) for sql in last]
            commands: list[Command] = [
                *[(command, ignore_result) for command in plain],
                *self.commands,
                *[(command, ignore_result) for command in end],
            ]
            results = self.exchange([command for command, _ in commands])
        for (_, read_result), result in zip(commands, results, strict=True):
            if result.status not in SUCCESS_STATUSES:
                raise error_from_result(result, encoding=raw.info.encoding)
            read_result(result)

    def exchange(self, commands: Sequence[Callable[[], None]]) -> list[Any]:
        """Send commands and return their results."""
        pgconn = self.raw.pgconn
        pgconn.enter_pipeline_mode()
        try:
            for command in commands:
                command()
            pgconn.pipeline_sync()
            results: list[Any] = self.raw.wait(read_results(pgconn, len(commands)))
            pgconn.exit_pipeline_mode()
        except BaseException:
            # Close the connection, because unread results may be left on it.
            if pgconn.status != ConnStatus.BAD:
                self.raw.close()
            raise
        return results

    def load_rows(self, result: Any) -> list[tuple[Any, ...]]:
        self.transformer.set_pgresult(result)
        return self.transformer.load_rows(0, result.ntuples, tuple)


def ignore_result(result: Any) -> None:
    """Take the result of a command that returns nothing."""


def read_results(pgconn: Any, number: int) -> Generator[Any, Any, list[Any]]:
    """Generator for psycopg's `wait`: flush the buffer, and read the result of each command and of Sync."""
    yield from send(pgconn)
    results = []
    for _ in range(number):
        [result] = yield from fetch_many(pgconn)
        results.append(result)
    yield from fetch_many(pgconn)
    return results
