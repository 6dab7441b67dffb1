"""The ledger writer: group commit, and a new connection when one breaks."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from threading import Barrier, Thread
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.services import create_key, revoke_key
from prompts.models import LedgerEntry
from prompts.proof_rows import build_ledger_row
from prompts.serving import ledger_connection, ledger_insert, ledger_writer
from prompts.serving.errors import InvalidKey, ServingUnavailable
from prompts.serving.ledger_connection import LedgerWriteError
from prompts.serving.ledger_writer import LedgerWriter, PendingRow
from tests.database_cleanup import empty
from tests.factories import BY, make_user, make_workspace
from tests.module_fixtures import committed_rows_of_a_module
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage
from tests.workers import wait_for

# The tests wait for events, and this long only if one does not come.
SECONDS = 60
only_postgres = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="speaks of PostgreSQL")


@pytest.fixture(scope="module")
def committed(django_db_setup, django_db_blocker) -> Iterator[Stage]:
    """Committed rows, created once per module: the tests only add to the ledger."""
    with committed_rows_of_a_module(django_db_blocker):
        yield make_stage(make_workspace("Harbour", owner=make_user("Alice")))


@pytest.fixture
def stage(committed) -> Iterator[Stage]:
    yield deepcopy(committed)
    ledger_writer.PROCESS_WRITER.close()
    empty(["prompts_ledgerentry"])


def open_connection() -> Any:
    """Return the connection that the process's writer has open."""
    return ledger_writer.PROCESS_WRITER._connection


class SlowConnection:
    """The real connection, whose first statement waits; it records the number of rows of each statement."""

    def __init__(self, real: ledger_connection.LedgerConnection, may_run: Callable[[], bool]) -> None:
        self.real, self.may_run = real, may_run
        self.batches: list[int] = []

    def run(self, sql: str, drafts: str) -> ledger_connection.WrittenRows:
        self.batches.append(drafts.count('"seal"'))
        if len(self.batches) == 1:
            assert wait_for(self.may_run, SECONDS)
        return self.real.run(sql, drafts)

    def close(self) -> None:
        self.real.close()


def slow_down(count: int) -> SlowConnection:
    """Make the first statement wait until all other rows of so many callers are queued."""
    slow = SlowConnection(open_connection(), partial(are_queued, ledger_writer.PROCESS_WRITER, count - 1))
    ledger_writer.PROCESS_WRITER._connection = slow
    return slow


def are_queued(writer: LedgerWriter, count: int) -> bool:
    """Return whether so many rows wait: the writer thread has taken one, and waits for the connection."""
    return writer._queue.qsize() >= count - 1


def at_once(count: int, work) -> list[Exception]:
    """Run the work in that many threads that start together; return their errors."""
    barrier, errors = Barrier(count), []

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except Exception as error:  # noqa: BLE001  # asserted by the test
            errors.append(error)
        finally:
            connection.close()

    threads = [Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


# --- one statement -------------------------------------------------------------------------------------


@only_postgres
def test_a_fetch_is_one_message_and_one_execution_on_the_wire(stage):
    """In the protocol trace, nothing but the one statement is prepared, begun, checked or committed."""
    stage.fetch()
    pgconn = open_connection().pgconn
    with tempfile.TemporaryFile() as trace, CaptureQueriesContext(connection) as queries:
        pgconn.trace(trace.fileno())
        for _ in range(10):
            stage.fetch()
        pgconn.untrace()
        trace.seek(0)
        sent = [line.split(b"\t")[3].strip() for line in trace if line.split(b"\t")[1] == b"F"]
    assert len(queries) == 0
    assert (sent.count(b"Bind"), sent.count(b"Execute"), sent.count(b"Sync")) == (10, 10, 10)
    assert set(sent) == {b"Bind", b"Describe", b"Execute", b"Sync"}


def test_the_row_is_committed_before_the_prompt_is_returned(stage):
    """Another connection sees the row: the writer leaves no transaction open."""
    served = stage.fetch()
    row = LedgerEntry.objects.in_workspace(stage.workspace).get()
    assert row.pk == served.ledger_id
    assert row.seal == build_ledger_row(row).seal()


def test_rows_of_a_batch_are_committed_before_their_prompts_are_returned(stage):
    """Each thread looks for its row as soon as it has its prompt, on its own connection."""
    stage.fetch()
    slow = slow_down(10)

    def fetch_and_look(_: int) -> None:
        served = stage.fetch()
        row = LedgerEntry.objects.in_workspace(stage.workspace).filter(pk=served.ledger_id).first()
        assert row is not None
        assert row.request_id == served.request_id

    assert at_once(10, fetch_and_look) == []
    assert max(slow.batches) > 1


# --- many at once --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_waiting_rows_are_written_together_and_each_gets_its_own_id(stage):
    stage.fetch()
    slow = slow_down(12)
    served = []
    assert at_once(12, lambda _: served.append(stage.fetch())) == []
    assert sum(slow.batches) == 12
    assert len(slow.batches) <= 6
    rows = {row.pk: row for row in stage.rows}
    assert len({one.ledger_id for one in served}) == 12
    for one in served:
        row = rows[one.ledger_id]
        assert (row.request_id, row.served_digest) == (one.request_id, one.row.served)
        assert row.seal == build_ledger_row(row).seal()


@pytest.mark.slow
def test_each_row_of_a_batch_is_checked_on_its_own(stage):
    """A revoked key and a good one in the same statement: one row."""
    key, other = create_key(stage.workspace, "Other", {}, by=BY)
    stage.fetch()
    fetch(other, cache=stage.cache)
    slow = slow_down(8)
    revoke_key(key, by=BY)
    before = len(stage.rows)
    errors = at_once(8, lambda number: fetch(other if number % 2 else stage.secret, cache=stage.cache))
    assert [type(error) for error in errors] == [InvalidKey] * 4
    assert max(slow.batches) > 1
    assert len(stage.rows) == before + 4


def test_different_statements_are_not_mixed_in_a_batch(stage):
    for label in ("production", "latest"):
        stage.fetch(label=label)
    served = []
    assert at_once(8, lambda n: served.append(stage.fetch(label=("production", "latest")[n % 2]))) == []
    labels = dict(LedgerEntry.objects.in_workspace(stage.workspace).values_list("pk", "label"))
    assert all(labels[one.ledger_id] == one.row.label for one in served)


@pytest.mark.slow
def test_one_invalid_row_does_not_fail_the_others(stage, monkeypatch):
    stage.fetch()
    sql, draft, seal = a_draft(stage, monkeypatch)
    # The number is too large for the column.
    broken = (
        draft.replace('"size":', '"size":99999999999', 1) if connection.vendor == "postgresql" else "nonsense"
    )
    slow = slow_down(6)
    before = len(stage.rows)

    def write(number: int) -> None:
        if number:
            stage.fetch()
        else:
            # Not the first statement, which has only one row.
            wait_for(lambda: slow.batches, SECONDS)
            ledger_writer.write_ledger_row(PendingRow(sql, broken, seal))

    errors = at_once(6, write)
    assert [type(error) for error in errors] == [LedgerWriteError]
    assert len(stage.rows) == before + 5


def a_draft(stage: Stage, monkeypatch) -> tuple[str, str, str]:
    """Return the arguments that one fetch passes to the writer."""
    calls: list[tuple[str, str, str]] = []

    def keep(row: PendingRow) -> int | None:
        calls.append((row.sql, row.draft, row.seal))
        return ledger_writer.write_ledger_row(row)

    with monkeypatch.context() as patched:
        patched.setattr(ledger_insert, "write_ledger_row", keep)
        stage.fetch()
    return calls[0]


def test_equal_rows_get_one_id_each():
    rows = [PendingRow("", "", "same"), PendingRow("", "", "same"), PendingRow("", "", "other")]
    ledger_writer.assign_ledger_ids(rows, [(4, "same"), (7, "same")])
    assert sorted(row.ledger_id or 0 for row in rows) == [0, 4, 7]


# --- when it breaks ------------------------------------------------------------------------------------


@only_postgres
def test_a_lost_connection_is_replaced_within_the_same_fetch(stage):
    stage.fetch()
    first = open_connection().pgconn.backend_pid
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [first])
        assert wait_for(lambda: not is_connected(first), SECONDS)
    assert stage.fetch().status == 200
    assert open_connection().pgconn.backend_pid != first


def is_connected(backend_pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [backend_pid])
        return cursor.fetchone() is not None


@only_postgres
def test_fetches_fail_while_the_database_is_down_and_recover_afterwards(stage, monkeypatch):
    stage.fetch()
    ledger_writer.PROCESS_WRITER.close()
    real = ledger_connection.get_libpq_parameters
    monkeypatch.setattr(
        ledger_connection, "get_libpq_parameters", lambda: real() | {"host": "/nowhere", "port": "1"}
    )
    for _ in range(3):
        with pytest.raises(ServingUnavailable):
            stage.fetch()
    monkeypatch.setattr(ledger_connection, "get_libpq_parameters", real)
    assert stage.fetch().status == 200
    assert len(stage.rows) == 2


@pytest.mark.slow
@only_postgres
def test_a_database_that_does_not_respond_times_out(stage, monkeypatch):
    stage.fetch()
    with psycopg.connect(**{**ledger_connection.get_libpq_parameters(), "options": ""}) as other:
        other.execute("LOCK TABLE prompts_ledgerentry IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        with monkeypatch.context() as patched:
            patched.setattr(ledger_connection, "RESPONSE_TIMEOUT", 0.3)
            with pytest.raises(ServingUnavailable):
                stage.fetch()
        assert time.monotonic() - began < ledger_connection.RESPONSE_TIMEOUT
        other.rollback()
    assert stage.fetch().status == 200


@pytest.mark.slow
def test_a_row_that_waits_too_long_for_the_writer_fails(stage, monkeypatch):
    stage.fetch()
    monkeypatch.setattr(ledger_writer, "WAIT_TIMEOUT", 0.1)
    failed: list[Exception] = []
    ledger_writer.PROCESS_WRITER._connection = SlowConnection(open_connection(), lambda: len(failed) == 2)

    def fetch_or_fail(_: int) -> None:
        try:
            stage.fetch()
        except ServingUnavailable as error:
            failed.append(error)

    assert at_once(3, fetch_or_fail) == []
    assert len(failed) == 2
    assert stage.fetch().status == 200


@dataclass
class FaultyConnection:
    """A connection whose statements end in an unexpected error, the first when other rows are queued."""

    may_run: Callable[[], bool]

    def run(self, sql: str, drafts: str) -> ledger_connection.WrittenRows:
        assert wait_for(self.may_run, SECONDS)
        raise ZeroDivisionError

    def close(self) -> None: ...


@pytest.mark.slow
def test_an_unexpected_error_leaves_no_row_pending_and_the_thread_running(stage, monkeypatch):
    writer, queued = LedgerWriter(), chain([2], repeat(0))
    sql, draft, seal = a_draft(stage, monkeypatch)

    with monkeypatch.context() as patched:
        open_faulty = lambda: FaultyConnection(partial(are_queued, writer, next(queued)))  # noqa: E731
        patched.setattr(ledger_writer, "open_ledger_connection", open_faulty)
        # A row that stays pending would wait longer than the limit below.
        patched.setattr(ledger_writer, "WAIT_TIMEOUT", 3 * SECONDS)
        began = time.monotonic()
        errors = at_once(3, lambda number: writer.write(PendingRow("sql", "{}", str(number))))
        assert time.monotonic() - began < SECONDS
    assert {type(error) for error in errors} == {ZeroDivisionError, LedgerWriteError}
    assert len(errors) == 3
    written = []
    assert at_once(3, lambda _: written.append(writer.write(PendingRow(sql, draft, seal)))) == []
    assert len(set(written)) == 3
    writer.close()


def start_writer_thread(stage: Stage) -> Thread:
    """Fetch four times at once on a slow connection, and return the thread that wrote the waiting rows."""
    stage.fetch()
    slow_down(4)
    assert at_once(4, lambda _: stage.fetch()) == []
    thread = ledger_writer.PROCESS_WRITER._thread
    assert thread is not None
    return thread


def test_a_child_process_has_its_own_connection_and_thread(stage):
    writer = ledger_writer.PROCESS_WRITER
    assert start_writer_thread(stage).is_alive()
    # As if another thread were writing during the fork.
    writer._connection_lock.acquire()
    child = os.fork()
    if not child:
        # Exit at once: the parent's test must not continue in the child.
        is_new = (
            writer._connection is None
            and writer._thread is None
            and writer._connection_lock.acquire(timeout=1)
        )
        os._exit(0 if is_new else 1)
    writer._connection_lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stage.fetch().status == 200


@pytest.mark.slow
def test_a_closed_writer_has_no_thread_and_starts_again(stage):
    for _ in range(2):
        thread = start_writer_thread(stage)
        ledger_writer.PROCESS_WRITER.close()
        assert not thread.is_alive()
        assert open_connection() is None
    assert len(stage.rows) == 10


# --- with a fault planted ------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_writer_that_returns_wrong_ids_is_found(stage, monkeypatch):
    def assign_in_order(rows, written):
        for row, (ledger_id, _) in zip(rows, reversed(written), strict=False):
            row.finish(ledger_id)

    monkeypatch.setattr(ledger_writer, "assign_ledger_ids", assign_in_order)
    with pytest.raises(AssertionError):
        test_waiting_rows_are_written_together_and_each_gets_its_own_id(stage)


@pytest.mark.planted
def test_a_writer_that_never_reconnects_is_found(stage, monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("speaks of PostgreSQL")

    def once(self, sql, rows):
        self._connection = self._connection or ledger_connection.open_ledger_connection()
        return self._connection.run(sql, f"[{','.join(row.draft for row in rows)}]")

    monkeypatch.setattr(LedgerWriter, "_run_insert", once)
    with pytest.raises(ServingUnavailable):
        test_a_lost_connection_is_replaced_within_the_same_fetch(stage)


@pytest.mark.planted
def test_a_batch_that_fails_as_a_whole_is_found(stage, monkeypatch):
    def insert_all(self, sql, rows):
        try:
            ledger_writer.assign_ledger_ids(rows, self._run_insert(sql, rows))
        except LedgerWriteError as failure:
            ledger_writer.fail_pending_rows(rows, failure)

    monkeypatch.setattr(LedgerWriter, "_insert_rows", insert_all)
    with pytest.raises(AssertionError):
        test_one_invalid_row_does_not_fail_the_others(stage, monkeypatch)


@pytest.mark.planted
def test_a_writer_that_returns_before_the_commit_is_found(stage, monkeypatch):
    """The fault: a statement is one of several in a transaction that is committed later."""

    def run_in_transaction(self, sql, drafts):
        if not self.batches:
            begin(self.real)
        self.batches.append(drafts.count('"seal"'))
        return self.real.run(sql, drafts)

    monkeypatch.setattr(SlowConnection, "run", run_in_transaction)
    with pytest.raises(AssertionError):
        test_rows_of_a_batch_are_committed_before_their_prompts_are_returned(stage)


def begin(opened: Any) -> None:
    if connection.vendor == "postgresql":
        opened.pgconn.exec_(b"BEGIN")
    else:
        opened._file.execute("BEGIN")


@pytest.mark.planted
def test_a_writer_that_wakes_callers_before_it_writes_is_found(stage, monkeypatch):
    real, late = LedgerWriter._write_batch, []

    def answer_first(self, batch):
        if len(batch) == 1:
            real(self, batch)
            return
        copies = [PendingRow(row.sql, row.draft, row.seal) for row in batch]
        for number, row in enumerate(batch):
            row.finish(1_000_000_000 + number)
        late.append(copies)

    monkeypatch.setattr(LedgerWriter, "_write_batch", answer_first)
    with pytest.raises(AssertionError):
        test_rows_of_a_batch_are_committed_before_their_prompts_are_returned(stage)
    assert late
