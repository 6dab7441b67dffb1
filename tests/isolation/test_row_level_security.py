"""Pages and API respond the same with row-level security as without.

test_pages.py and test_operations.py prove R1 completely without row-level security. Here the same
requests are repeated with it: a third of them, selected by the run's seed, also in tests marked `hard`.
"""

import os
from collections.abc import Callable, Iterator
from operator import attrgetter

import pytest
import time_machine
from django.utils import timezone

from core.db import workspace_scope
from tests.isolation import api_matrix
from tests.isolation.api_cast import CALLERS, before, callers, known_callers, rolled_back_as_test  # noqa: F401  # fixtures
from tests.isolation.api_table import known_endpoints
from tests.isolation.cast import Stage, rolled_back
from tests.isolation.matrix import (
    OUTSIDERS,
    REQUESTERS,
    Outcome,
    address,
    inside_cells,
    inside_routes,
    one_in_turn,
    outside_routes,
    run_inside,
    run_outside,
)
from tests.isolation.probe import quick_templates, send_request
from tests.isolation.turns import operations_in_turn, pages_in_turn, turn_of_this_run
from tests.project.database.restricted_role import as_app_role

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="SQLite has no roles"),
    pytest.mark.slow,
]
Responses = Iterator[tuple[str, str]]


def pages(stage: Stage, every: int, turn: int = 0) -> Responses:
    """Yield the responses to the owner's requests for some pages."""
    cells = inside_cells(stage, stage.requesters["owner"], inside_routes()[turn % every :: every])
    with quick_templates():
        for cell in cells:
            if (cell.method, cell.target) == ("GET", "own"):
                with rolled_back():
                    answer = send_request(cell.requester, "GET", address(stage, cell))
                    yield str(cell), answer.shape


def operations(stage: Stage, callers: dict, every: int, turn: int = 0) -> Responses:  # noqa: F811
    """Yield the responses to the owner's key; for writes only the status, because new rows get new ids."""
    cells = api_matrix.cells(callers["owner"], known_endpoints()[turn % every :: every])
    for cell in cells:
        if cell.target == api_matrix.OWN:
            with rolled_back_as_test():
                answer, _ = api_matrix.send_cell(stage, cell)
                yield str(cell), str(answer.status) if answer.wrote_tenant_rows else answer.shape


def compare(send_all: Callable[[], Responses]) -> Outcome:
    """Send the requests twice with the same clock, without row-level security and with it."""
    with time_machine.travel(timezone.now(), tick=False):
        without = dict(send_all())
        with as_app_role():
            with_security = dict(send_all())
    return Outcome(
        len(with_security), [name for name, response in with_security.items() if response != without[name]]
    )


@pytest.mark.parametrize("every", [16, pytest.param(3, marks=pytest.mark.hard)])
def test_pages_are_the_same_with_row_level_security(every, stage, tally):
    turn = turn_of_this_run()
    tally(compare(lambda: pages(stage, every, turn)), at_least=200 // every)


@pytest.mark.parametrize("every", [20, pytest.param(3, marks=pytest.mark.hard)])
def test_api_responses_are_the_same_with_row_level_security(every, stage, callers, tally):  # noqa: F811
    turn = turn_of_this_run()
    tally(compare(lambda: operations(stage, callers, every, turn)), at_least=150 // every)


@pytest.mark.planted
def test_a_missing_workspace_scope_is_found(stage, callers, monkeypatch):  # noqa: F811
    monkeypatch.setattr(workspace_scope, "enter_workspace", lambda workspace_id: None)
    assert len(compare(lambda: pages(stage, 20)).findings) >= 3
    assert len(compare(lambda: operations(stage, callers, 40)).findings) >= 2


# --- all requesters and callers ------------------------------------------------------------------------


@pytest.fixture
def restricted(stage, callers, before):  # noqa: F811
    """The seeded data; from here on queries run as the restricted database role."""
    with as_app_role():
        yield stage


@pytest.mark.hard
@pytest.mark.parametrize("name", REQUESTERS)
def test_workspace_pages_return_the_expected_status_with_row_level_security(
    name,
    restricted,
    before,  # noqa: F811
    tally,
):
    turn = turn_of_this_run()
    routes = pages_in_turn(inside_routes(), turn, attrgetter("name"))
    tally(
        run_inside(restricted, restricted.requesters[name], routes, one_in_turn(turn), before),
        at_least=8,
    )


@pytest.mark.hard
@pytest.mark.parametrize("name", OUTSIDERS)
def test_outside_pages_show_no_tenant_data_with_row_level_security(name, restricted, tally):
    tally(
        run_outside(restricted, restricted.requesters[name], outside_routes(), turn_of_this_run()),
        at_least=15,
    )


@pytest.mark.hard
@pytest.mark.parametrize("name", CALLERS)
def test_operations_return_the_expected_status_with_row_level_security(
    name,
    restricted,
    callers,  # noqa: F811
    before,  # noqa: F811
    tally,
):
    turn = turn_of_this_run()
    endpoints, is_due = (
        operations_in_turn(known_endpoints(), turn, attrgetter("name")),
        api_matrix.one_in_turn(turn),
    )
    tally(api_matrix.run(restricted, callers[name], endpoints, before, is_due), at_least=8)
