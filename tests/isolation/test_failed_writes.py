"""Promise R14: a request that fails at any statement leaves nothing of its changes, in any table."""

import pytest
from django.db.transaction import Atomic

from tests.isolation.api_cast import before, callers, known_callers  # noqa: F401  # fixtures
from tests.isolation.api_table import known_endpoints
from tests.isolation.failed_writes import (
    InjectedError,
    every_position,
    last_positions,
    run_operations,
    run_pages,
)
from tests.isolation.matrix import inside_routes
from tests.isolation.turns import turn_of_this_run

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_failed_operations_leave_nothing_in_this_turn(stage, callers, before, tally):  # noqa: F811
    endpoints = known_endpoints()[turn_of_this_run() % 8 :: 8]
    tally(run_operations(stage, callers, endpoints, before, last_positions), at_least=5)


@pytest.mark.slow
def test_failed_pages_leave_nothing_in_this_turn(stage, before, tally):  # noqa: F811
    routes = inside_routes()[turn_of_this_run() % 8 :: 8]
    tally(run_pages(stage, stage.requesters["owner"], routes, before, last_positions), at_least=3)


@pytest.mark.promise("R14")
@pytest.mark.hard
def test_all_operations_that_fail_leave_nothing(stage, callers, before, tally, record_property):  # noqa: F811
    outcome = run_operations(stage, callers, known_endpoints(), before, every_position)
    record_property("measured", f"{outcome.cells:,} failures of API operations, nothing left of any")
    tally(outcome, at_least=400)


@pytest.mark.promise("R14")
@pytest.mark.hard
def test_all_pages_that_fail_leave_nothing(stage, before, tally, record_property):  # noqa: F811
    outcome = run_pages(stage, stage.requesters["owner"], inside_routes(), before, every_position)
    record_property("measured", f"{outcome.cells:,} failures of pages, nothing left of any")
    tally(outcome, at_least=200)


@pytest.mark.promise("R14")
@pytest.mark.planted
def test_an_action_that_keeps_a_part_of_its_changes_is_found(stage, callers, before, monkeypatch):  # noqa: F811
    """Planted fault: transactions are committed although their action failed."""
    leave = Atomic.__exit__

    def commit_anyway(self: Atomic, kind: object, error: BaseException | None, trace: object) -> None:
        is_injected = isinstance(error, InjectedError)
        leave(self, *((None, None, None) if is_injected else (kind, error, trace)))  # type: ignore[arg-type]

    monkeypatch.setattr(Atomic, "__exit__", commit_anyway)
    endpoints = [endpoint for endpoint in known_endpoints() if str(endpoint) == "PATCH tasks-one"]
    outcome = run_operations(stage, callers, endpoints, before, every_position)
    assert any("left changes in personas_task" in finding for finding in outcome.findings), outcome
