"""Promise R1 for the API: no key reads or changes data of another workspace."""

from operator import attrgetter

import pytest

from tests.isolation.api_cast import CALLERS, KeyFactory, before, callers, known_callers  # noqa: F401  # fixtures
from tests.isolation.api_matrix import (
    INVALID,
    LIMITED,
    cells,
    every_cell,
    one_in_turn,
    run,
    run_other_methods,
)
from tests.isolation.api_policy import find_policy_mismatches
from tests.isolation.api_probe import call
from tests.isolation.api_substitution import find_unknown_fields, run_bodies, run_queries
from tests.isolation.api_table import find_table_gaps, known_endpoints
from tests.isolation.api_walk import all_endpoints
from tests.isolation.cast import HARBOUR, owner_of
from tests.isolation.turns import ALIKE, ROUND, TURNS, operations_in_turn, turn_of_this_run

pytestmark = pytest.mark.django_db


def test_every_operation_has_a_row_and_every_row_an_operation():
    assert not find_table_gaps(all_endpoints())


def test_every_operation_requires_the_expected_permission():
    assert not find_policy_mismatches(all_endpoints())


def endpoints_of(turn):
    return operations_in_turn(known_endpoints(), turn, attrgetter("name"))


def met_cells(callers, is_due, endpoints):  # noqa: F811
    selected = [cell for caller in callers.values() for cell in cells(caller, endpoints, is_due)]
    return {(str(cell.endpoint), cell.caller.name) for cell in selected}, len(selected)


def test_the_matrix_calls_every_operation_with_every_key(stage, callers):  # noqa: F811
    met, count = met_cells(callers, every_cell, known_endpoints())
    assert met == {(str(endpoint), name) for endpoint in all_endpoints() for name in CALLERS}
    assert count >= 3_000


def test_all_turns_together_cover_every_operation():
    turns = {turn: {str(endpoint) for endpoint in endpoints_of(turn)} for turn in range(0, TURNS, ROUND)}
    assert set.union(*turns.values()) == {str(endpoint) for endpoint in all_endpoints()}
    assert all(len(names) > 100 for names in turns.values())
    assert {"PATCH souls-one", "PATCH skills-one"} <= turns[ROUND * ALIKE.index("souls")]


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(0, TURNS, ROUND + 1))
def test_every_turn_calls_its_operations_with_keys_of_every_kind(turn, stage, callers):  # noqa: F811
    met, count = met_cells(callers, one_in_turn(turn), endpoints_of(turn))
    endpoints = {str(endpoint) for endpoint in endpoints_of(turn)}
    for group in ({"no key"}, {"owner"}, INVALID):
        assert {endpoint for endpoint, name in met if name in group} == endpoints
    assert {name for _, name in met} == set(CALLERS)
    assert count >= 700


@pytest.mark.slow
def test_all_turns_together_call_every_operation_with_every_limited_key(stage, callers):  # noqa: F811
    chosen = {name: callers[name] for group in (("bot",), *LIMITED) for name in group}
    turns = [met_cells(chosen, one_in_turn(turn), known_endpoints())[0] for turn in range(ROUND)]
    assert set.union(*turns) == {(str(endpoint), name) for endpoint in all_endpoints() for name in chosen}


@pytest.mark.parametrize("name", CALLERS)
def test_operations_return_the_expected_status_in_this_turn(name, stage, callers, before, tally):  # noqa: F811
    turn = turn_of_this_run()
    tally(run(stage, callers[name], endpoints_of(turn), before, one_in_turn(turn)), at_least=8)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", CALLERS)
def test_all_operations_return_the_expected_status(name, stage, callers, before, tally):  # noqa: F811
    tally(run(stage, callers[name], known_endpoints(), before), at_least=180)


@pytest.mark.slow
@pytest.mark.promise("R1")
def test_unsupported_methods_return_405(stage, callers, before, tally):  # noqa: F811
    tally(run_other_methods(stage, callers, known_endpoints(), before), at_least=100)


# --- identifiers outside the path ----------------------------------------------------------------------


def test_every_field_is_listed_as_reference_or_plain():
    assert not find_unknown_fields(all_endpoints())


def every_third_endpoint():
    return known_endpoints()[turn_of_this_run() % 3 :: 3]


@pytest.mark.slow
def test_foreign_identifiers_are_treated_like_missing_ones_in_this_turn(stage, callers, before, tally):  # noqa: F811
    tally(run_bodies(stage, callers["owner"], every_third_endpoint(), before), at_least=20)
    tally(run_queries(stage, callers["owner"], every_third_endpoint(), before), at_least=8)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", ["owner", "bot", "owner of elsewhere"])
def test_foreign_identifiers_in_bodies_are_rejected_like_missing_ones(name, stage, callers, before, tally):  # noqa: F811
    tally(run_bodies(stage, callers[name], known_endpoints(), before), at_least=8)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", ["owner", "bot", "owner of elsewhere"])
def test_foreign_identifiers_in_filters_match_nothing(name, stage, callers, before, tally):  # noqa: F811
    tally(run_queries(stage, callers[name], known_endpoints(), before), at_least=20)


# --- limited keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scopes",
    [{"verbs": ["manage"]}, {"verbs": ["manage", "read"]}, {"channels": None}, {"labels": ["fresh"]}],
)
def test_a_limited_key_cannot_create_a_key_with_more_permissions(scopes, stage, callers):  # noqa: F811
    keys = KeyFactory(stage, {})
    scopes = {name: value or [stage.key(HARBOUR, name)] for name, value in scopes.items()}
    keys.add("limited", HARBOUR, owner_of(stage, HARBOUR), "owner", **scopes)
    for kind in ("bot", "admin"):
        answer = call(keys.callers["limited"], "POST", "/api/v1/keys", {"name": f"Wide {kind}", "kind": kind})
        assert answer.status in {403, 422}, f"a {kind} key without limits was made with {scopes}"


@pytest.mark.parametrize("name", ["narrow owner", "narrow bot"])
def test_a_key_for_one_agent_cannot_write_records_shared_by_all_agents(name, stage, callers):  # noqa: F811
    memory, task = stage.key(HARBOUR, "memories"), stage.key(HARBOUR, "tasks")
    shared = [
        ("POST", "memories", {"text": "For all."}),
        ("POST", "tasks", {"title": "For all"}),
        ("PATCH", f"memories/{memory}", {"agent": None}),
        ("PATCH", f"tasks/{task}", {"agent": None}),
    ]
    headers = {"If-Match": "*"}
    answers = {
        f"{method} {path.partition('/')[0]}": call(
            callers[name], method, f"/api/v1/{path}", body, headers
        ).status
        for method, path, body in shared
    }
    assert not {endpoint: status for endpoint, status in answers.items() if status not in {403, 422}}
