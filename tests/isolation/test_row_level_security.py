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
from tests.isolation.api_cast import CALLERS, before, callers, known_callers, unnoticed  # noqa: F401  # fixtures
from tests.isolation.api_table import known_doors
from tests.isolation.cast import Stage, undone
from tests.isolation.matrix import (
    ASKERS,
    OUTSIDERS,
    Outcome,
    address,
    inside_cells,
    inside_routes,
    one_in_turn,
    outside_routes,
    run_inside,
    run_outside,
)
from tests.isolation.probe import ask, quick_templates
from tests.isolation.turns import operations_in_turn, pages_in_turn, turn_of_this_run
from tests.project.database.restricted_role import as_app_role

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="SQLite has no roles"),
]
Said = Iterator[tuple[str, str]]


def pages(stage: Stage, every: int, turn: int = 0) -> Said:
    """Yield the responses to the owner's requests for some pages."""
    cells = inside_cells(stage, stage.askers["owner"], inside_routes()[turn % every :: every])
    with quick_templates():
        for cell in cells:
            if (cell.method, cell.target) == ("GET", "own"):
                with undone():
                    answer = ask(cell.asker, "GET", address(stage, cell))
                    yield str(cell), answer.shape


def operations(stage: Stage, callers: dict, every: int, turn: int = 0) -> Said:  # noqa: F811
    """Yield the responses to the owner's key; for writes only the status, because new rows get new ids."""
    cells = api_matrix.cells(callers["owner"], known_doors()[turn % every :: every])
    for cell in cells:
        if cell.target == api_matrix.OWN:
            with unnoticed():
                answer, _ = api_matrix.asked(stage, cell)
                yield str(cell), str(answer.status) if answer.wrote_tenant_rows else answer.shape


def compare(told: Callable[[], Said]) -> Outcome:
    """Send the requests twice with the same clock, without row-level security and with it."""
    with time_machine.travel(timezone.now(), tick=False):
        without = dict(told())
        with as_app_role():
            behind = dict(told())
    return Outcome(len(behind), [name for name, said in behind.items() if said != without[name]])


@pytest.mark.parametrize("every", [16, pytest.param(3, marks=pytest.mark.hard)])
def test_the_owner_reads_the_same_behind_the_wall(every, stage, tally):
    turn = turn_of_this_run()
    tally(compare(lambda: pages(stage, every, turn)), at_least=200 // every)


@pytest.mark.parametrize("every", [20, pytest.param(3, marks=pytest.mark.hard)])
def test_the_owners_key_is_answered_the_same_behind_the_wall(every, stage, callers, tally):  # noqa: F811
    turn = turn_of_this_run()
    tally(compare(lambda: operations(stage, callers, every, turn)), at_least=150 // every)


@pytest.mark.planted
def test_a_gate_that_forgets_to_tell_is_noticed(stage, callers, monkeypatch):  # noqa: F811
    monkeypatch.setattr(workspace_scope, "enter_workspace", lambda workspace_id: None)
    assert len(compare(lambda: pages(stage, 20)).findings) >= 3
    assert len(compare(lambda: operations(stage, callers, 40)).findings) >= 2


# --- all requesters and callers ------------------------------------------------------------------------


@pytest.fixture
def walled(stage, callers, before):  # noqa: F811
    """The seeded data; from here on queries run as the restricted database role."""
    with as_app_role():
        yield stage


@pytest.mark.hard
@pytest.mark.parametrize("name", ASKERS)
def test_pages_answer_behind_the_wall_as_the_table_says_to(name, walled, before, tally):  # noqa: F811
    turn = turn_of_this_run()
    routes = pages_in_turn(inside_routes(), turn, attrgetter("name"))
    tally(run_inside(walled, walled.askers[name], routes, one_in_turn(turn), before), at_least=8)


@pytest.mark.hard
@pytest.mark.parametrize("name", OUTSIDERS)
def test_pages_outside_answer_behind_the_wall_as_the_table_says_to(name, walled, tally):
    tally(run_outside(walled, walled.askers[name], outside_routes(), turn_of_this_run()), at_least=15)


@pytest.mark.hard
@pytest.mark.parametrize("name", CALLERS)
def test_operations_answer_behind_the_wall_as_they_should_to(name, walled, callers, before, tally):  # noqa: F811
    turn = turn_of_this_run()
    doors, is_due = operations_in_turn(known_doors(), turn, attrgetter("name")), api_matrix.one_in_turn(turn)
    tally(api_matrix.run(walled, callers[name], doors, before, is_due), at_least=8)
