"""The time of a ledger row is that of the database, also if the clock of the web server is wrong."""

from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from structlog.testing import capture_logs

from core.db import database_clock
from core.db.database_clock import DatabaseClock, read_database_time
from prompts.proof_rows import build_ledger_row
from prompts.serving import ledger_insert
from prompts.serving import services as serving_services
from prompts.serving.errors import InvalidKey, ServingUnavailable
from tests.prompts.serving.serving_stage import make_stage

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has the clock of the process"),
]
NEAR = timedelta(seconds=5)


@pytest.fixture(autouse=True)
def clock(settings, monkeypatch):
    settings.DRAMATIS_MAX_CLOCK_SKEW = 30
    clock = DatabaseClock()
    monkeypatch.setattr(serving_services, "PROCESS_CLOCK", clock)
    return clock


@pytest.fixture
def stage(workspace):
    return make_stage(workspace)


def set_clock(**difference: float) -> time_machine.travel:
    return time_machine.travel(timezone.now() + timedelta(**difference))


@pytest.mark.parametrize("days", [400, -400, 0.01, -0.01])
def test_a_row_has_the_time_of_the_database_although_the_clock_of_the_server_is_wrong(stage, days):
    stage.fetch()
    with set_clock(days=days):
        served = stage.fetch()
        [_, row] = stage.rows
        assert abs(row.at - read_database_time()) < NEAR
        assert served.at == row.at
        assert build_ledger_row(row).seal() == row.seal
        with CaptureQueriesContext(connection) as queries:
            stage.fetch()
        assert len(queries) == 1
    stage.fetch()
    assert all(abs(row.at - read_database_time()) < NEAR for row in stage.rows)


def test_a_small_difference_is_not_corrected(stage, clock):
    with set_clock(seconds=20):
        stage.fetch()
        assert not clock.correct(timedelta(seconds=60))
        assert clock.now() - timezone.now() < NEAR / 10
    assert stage.rows[0].at - read_database_time() > NEAR


def test_a_clock_that_is_behind_revives_no_expired_key(stage):
    stage.fetch()
    stage.key.expires_at = timezone.now() - timedelta(days=1)
    stage.key.save(update_fields=["expires_at"])
    with set_clock(days=-2), pytest.raises((InvalidKey, ServingUnavailable)):
        stage.fetch()
    assert len(stage.rows) == 1


def test_the_correction_is_logged_once(stage):
    with set_clock(days=1), capture_logs() as lines:
        stage.fetch()
        stage.fetch()
    events = [line for line in lines if line["event"] == "clock_corrected"]
    assert [round(event["seconds"] / 3_600) for event in events] == [-24]


def test_without_a_limit_the_time_of_the_server_is_taken(stage, settings):
    settings.DRAMATIS_MAX_CLOCK_SKEW = 0
    with set_clock(days=1):
        stage.fetch()
    assert stage.rows[0].at - read_database_time() > timedelta(hours=23)


@pytest.mark.planted
def test_a_statement_that_does_not_compare_the_clocks_is_found(stage, monkeypatch):
    monkeypatch.setattr(ledger_insert, "CLOCK_CONDITION", "true")
    ledger_insert.build_insert_sql.cache_clear()
    try:
        with pytest.raises(AssertionError):
            test_a_row_has_the_time_of_the_database_although_the_clock_of_the_server_is_wrong(stage, 400)
    finally:
        ledger_insert.build_insert_sql.cache_clear()


@pytest.mark.planted
def test_a_clock_that_is_not_corrected_refuses_prompts(stage, monkeypatch):
    monkeypatch.setattr(database_clock, "read_database_time", timezone.now)
    stage.fetch()
    with set_clock(days=1), pytest.raises(ServingUnavailable):
        stage.fetch()
