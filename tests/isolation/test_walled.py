"""The pages and the API answer alike when the database itself keeps the workspaces apart."""

import os

import pytest

from tests.isolation.api_cast import CALLERS, before, callers, known_callers  # noqa: F401  # fixtures
from tests.isolation.api_matrix import one_in_turn as operation_in_turn
from tests.isolation.api_matrix import run
from tests.isolation.api_table import known_doors
from tests.isolation.matrix import (
    ASKERS,
    OUTSIDERS,
    inside_routes,
    one_in_turn,
    outside_routes,
    run_inside,
    run_outside,
)
from tests.project.app_role import as_app_role

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="SQLite has no roles"),
]


@pytest.fixture
def walled(stage, callers, before):  # noqa: F811
    """After everything is on the stage: the wall stands from here on."""
    with as_app_role():
        yield stage


@pytest.mark.parametrize("name", ["owner"])
def test_the_pages_answer_behind_the_wall_as_the_table_says_to(name, walled, tally):
    tally(run_inside(walled, walled.askers[name], inside_routes(), one_in_turn), at_least=100)


@pytest.mark.parametrize("name", ["owner"])
def test_the_operations_answer_behind_the_wall_as_they_should_to(name, walled, callers, before, tally):  # noqa: F811
    tally(run(walled, callers[name], known_doors(), before, operation_in_turn), at_least=40)


@pytest.mark.hard
@pytest.mark.parametrize("name", ASKERS)
def test_all_pages_answer_behind_the_wall_as_the_table_says_to(name, walled, tally):
    tally(run_inside(walled, walled.askers[name], inside_routes(), one_in_turn), at_least=100)


@pytest.mark.hard
@pytest.mark.parametrize("name", OUTSIDERS)
def test_all_pages_outside_answer_behind_the_wall_as_the_table_says_to(name, walled, tally):
    tally(run_outside(walled, walled.askers[name], outside_routes(), in_turn=True), at_least=100)


@pytest.mark.hard
@pytest.mark.parametrize("name", CALLERS)
def test_all_operations_answer_behind_the_wall_as_they_should_to(name, walled, callers, before, tally):  # noqa: F811
    tally(run(walled, callers[name], known_doors(), before, operation_in_turn), at_least=40)
