"""The line to the ledger: one statement for all who wait, and a new connection when one breaks."""

import os
import tempfile
import time
from collections.abc import Iterator
from copy import deepcopy
from threading import Barrier, Thread
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.services import create_key, revoke_key
from prompts.hashed_rows import build_ledger_row
from prompts.models import LedgerEntry
from prompts.serving import InvalidKey, ServingUnavailable, ledger_connection, ledger_insert, ledger_writer
from prompts.serving.ledger_connection import LedgerWriteError
from prompts.serving.ledger_writer import LedgerWriter, PendingRow
from tests.database_cleanup import empty
from tests.factories import BY, make_user, make_workspace
from tests.module_fixtures import committed_rows_of_a_module
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage

only_postgres = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="speaks of PostgreSQL")


@pytest.fixture(scope="module")
def committed(django_db_setup, django_db_blocker) -> Iterator[Stage]:
    """Rows that every connection sees, made once: the tests only add to the ledger."""
    with committed_rows_of_a_module(django_db_blocker):
        yield make_stage(make_workspace("Harbour", owner=make_user("Alice")))


@pytest.fixture
def stage(committed) -> Iterator[Stage]:
    yield deepcopy(committed)
    ledger_writer.PROCESS_WRITER.close()
    empty(["prompts_ledgerentry"])


def held() -> Any:
    """The connection that the process has open."""
    return ledger_writer.PROCESS_WRITER._link


class SlowLink:
    """The real connection, behind a gate; it notes how many rows came in each statement."""

    def __init__(self, real: ledger_connection.LedgerConnection) -> None:
        self.real = real
        self.batches: list[int] = []
        self.seconds = 0.0

    def run(self, sql: str, drafts: str) -> ledger_connection.WrittenRows:
        self.batches.append(drafts.count('"seal"'))
        time.sleep(self.seconds)
        return self.real.run(sql, drafts)

    def close(self) -> None:
        self.real.close()


def at_once(count: int, work) -> list[Exception]:
    """So many threads that begin together."""
    barrier, errors = Barrier(count), []

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except Exception as error:  # noqa: BLE001  # told to the test
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
    """As the protocol has it: nothing is prepared, begun, checked or committed beside the one statement."""
    stage.fetch()
    wire = held().wire
    with tempfile.TemporaryFile() as trace, CaptureQueriesContext(connection) as queries:
        wire.trace(trace.fileno())
        for _ in range(10):
            stage.fetch()
        wire.untrace()
        trace.seek(0)
        sent = [line.split(b"\t")[3].strip() for line in trace if line.split(b"\t")[1] == b"F"]
    assert len(queries) == 0
    assert (sent.count(b"Bind"), sent.count(b"Execute"), sent.count(b"Sync")) == (10, 10, 10)
    assert set(sent) == {b"Bind", b"Describe", b"Execute", b"Sync"}


def test_the_row_is_there_for_others_when_the_words_are_out(stage):
    """Another connection sees it: nothing is left in a transaction of the line's own."""
    served = stage.fetch()
    row = LedgerEntry.objects.in_workspace(stage.workspace).get()
    assert row.pk == served.ledger_id
    assert row.seal == build_ledger_row(row).seal()


# --- many at once --------------------------------------------------------------------------------------


def test_those_who_wait_go_in_one_statement_and_each_gets_its_own_row(stage):
    stage.fetch()
    slow = SlowLink(held())
    ledger_writer.PROCESS_WRITER._link = slow
    slow.seconds = 0.1
    served = []
    assert at_once(12, lambda _: served.append(stage.fetch())) == []
    assert sum(slow.batches) == 12
    assert len(slow.batches) <= 6
    rows = {row.pk: row for row in stage.rows}
    assert len({one.ledger_id for one in served}) == 12
    for one in served:
        row = rows[one.ledger_id]
        assert (row.request_id, row.served_digest) == (one.request_id, one.served_digest)
        assert row.seal == build_ledger_row(row).seal()


def test_of_many_in_one_statement_each_is_judged_by_itself(stage):
    """A revoked key and a good one in the same statement: one row."""
    key, other = create_key(stage.workspace, "Other", {}, by=BY)
    stage.fetch()
    fetch(other, recall=stage.recall)
    slow = SlowLink(held())
    ledger_writer.PROCESS_WRITER._link = slow
    slow.seconds = 0.1
    revoke_key(key, by=BY)
    before = len(stage.rows)
    errors = at_once(8, lambda number: fetch(other if number % 2 else stage.secret, recall=stage.recall))
    assert [type(error) for error in errors] == [InvalidKey] * 4
    assert max(slow.batches) > 1
    assert len(stage.rows) == before + 4


def test_different_kinds_of_questions_do_not_mix(stage):
    for label in ("production", "latest"):
        stage.fetch(label=label)
    served = []
    assert at_once(8, lambda n: served.append(stage.fetch(label=("production", "latest")[n % 2]))) == []
    labels = dict(LedgerEntry.objects.in_workspace(stage.workspace).values_list("pk", "label"))
    assert all(labels[one.ledger_id] == one.row.label for one in served)


def test_one_row_that_cannot_be_written_keeps_no_other_out(stage, monkeypatch):
    stage.fetch()
    sql, draft, seal = a_draft(stage, monkeypatch)
    # No column holds so large a number.
    broken = (
        draft.replace('"size":', '"size":99999999999', 1) if connection.vendor == "postgresql" else "nonsense"
    )
    slow = SlowLink(held())
    ledger_writer.PROCESS_WRITER._link = slow
    slow.seconds = 0.05
    before = len(stage.rows)
    errors = at_once(
        6, lambda number: stage.fetch() if number else ledger_writer.write_ledger_row(sql, broken, seal)
    )
    assert [type(error) for error in errors] == [LedgerWriteError]
    assert len(stage.rows) == before + 5


def a_draft(stage: Stage, monkeypatch) -> tuple[str, str, str]:
    """What one fetch told the statement."""
    told: list[tuple[str, str, str]] = []

    def keep(sql: str, draft: str, seal: str) -> int | None:
        told.append((sql, draft, seal))
        return ledger_writer.write_ledger_row(sql, draft, seal)

    with monkeypatch.context() as patched:
        patched.setattr(ledger_insert, "write_ledger_row", keep)
        stage.fetch()
    return told[0]


def test_equal_rows_get_a_row_each():
    tickets = [PendingRow("", "", "same"), PendingRow("", "", "same"), PendingRow("", "", "other")]
    ledger_writer.assign_ledger_ids(tickets, [(4, "same"), (7, "same")])
    assert sorted(ticket.ledger_id or 0 for ticket in tickets) == [0, 4, 7]


# --- when it breaks ------------------------------------------------------------------------------------


@only_postgres
def test_a_connection_that_was_cut_is_replaced_within_the_same_fetch(stage):
    stage.fetch()
    first = held().wire.backend_pid
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [first])
    time.sleep(0.1)
    assert stage.fetch().status == 200
    assert held().wire.backend_pid != first


@only_postgres
def test_while_the_database_is_away_the_answer_is_the_same_and_afterwards_it_is_well(stage, monkeypatch):
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


@only_postgres
def test_a_database_that_is_silent_is_not_waited_for_longer_than_agreed(stage, monkeypatch):
    stage.fetch()
    monkeypatch.setattr(ledger_connection, "RESPONSE_TIMEOUT", 0.3)
    with psycopg.connect(**{**ledger_connection.get_libpq_parameters(), "options": ""}) as other:
        other.execute("LOCK TABLE prompts_ledgerentry IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        with pytest.raises(ServingUnavailable):
            stage.fetch()
        assert time.monotonic() - began < 2
        other.rollback()
    assert stage.fetch().status == 200


def test_whoever_waits_too_long_for_the_line_is_told_so(stage, monkeypatch):
    stage.fetch()
    monkeypatch.setattr(ledger_writer, "WAIT_TIMEOUT", 0.1)
    slow = SlowLink(held())
    ledger_writer.PROCESS_WRITER._link = slow
    slow.seconds = 0.5
    errors = at_once(3, lambda _: stage.fetch())
    assert [type(error) for error in errors] == [ServingUnavailable] * 2
    slow.seconds = 0.0
    assert stage.fetch().status == 200


def test_a_fault_of_ours_leaves_nobody_waiting_for_ever(stage):
    class Faulty:
        def run(self, sql: str, drafts: str) -> ledger_connection.WrittenRows:
            raise ZeroDivisionError

        def close(self) -> None: ...

    line = LedgerWriter()
    line._link = Faulty()
    other = PendingRow("sql", "{}", "b")
    line._waiting.append(other)
    with pytest.raises(ZeroDivisionError):
        line.write(PendingRow("sql", "{}", "a"))
    assert other.is_done
    assert other.failure


def test_a_child_process_speaks_on_a_line_of_its_own(stage):
    stage.fetch()
    child = os.fork()
    if not child:
        # Whatever happens here, the parent's test must not run twice.
        os._exit(0 if ledger_writer.PROCESS_WRITER._link is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stage.fetch().status == 200


# --- with a fault planted ------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_line_that_hands_out_any_row_is_found(stage, monkeypatch):
    def first_come(tickets, written):
        for ticket, (row, _) in zip(tickets, reversed(written), strict=False):
            ticket.end(row)

    monkeypatch.setattr(ledger_writer, "assign_ledger_ids", first_come)
    with pytest.raises(AssertionError):
        test_those_who_wait_go_in_one_statement_and_each_gets_its_own_row(stage)


@pytest.mark.planted
def test_a_line_that_never_tries_again_is_found(stage, monkeypatch):
    if connection.vendor != "postgresql":
        pytest.skip("speaks of PostgreSQL")

    def once(self, sql, tickets):
        self._link = self._link or ledger_connection.open_ledger_connection()
        return self._link.run(sql, f"[{','.join(ticket.draft for ticket in tickets)}]")

    monkeypatch.setattr(LedgerWriter, "_run", once)
    with pytest.raises(ServingUnavailable):
        test_a_connection_that_was_cut_is_replaced_within_the_same_fetch(stage)


@pytest.mark.planted
def test_a_batch_that_fails_as_a_whole_is_found(stage, monkeypatch):
    def together(self, sql, tickets):
        try:
            ledger_writer.assign_ledger_ids(tickets, self._run(sql, tickets))
        except LedgerWriteError as failure:
            ledger_writer.fail_pending_rows(tickets, failure)

    monkeypatch.setattr(LedgerWriter, "_write_together", together)
    with pytest.raises(AssertionError):
        test_one_row_that_cannot_be_written_keeps_no_other_out(stage, monkeypatch)
