"""Promise R1 for the API: no key reads or changes data of another workspace."""

from operator import attrgetter

import pytest

from tests.isolation.api_cast import CALLERS, Keys, before, callers, known_callers  # noqa: F401  # fixtures
from tests.isolation.api_matrix import LIMITED, SPENT, cells, every_cell, one_in_turn, run, run_other_methods
from tests.isolation.api_policy import disagreements
from tests.isolation.api_probe import call
from tests.isolation.api_substitution import run_bodies, run_queries, strange_words
from tests.isolation.api_table import flaws, known_doors
from tests.isolation.api_walk import all_doors
from tests.isolation.cast import HARBOUR, owner_of
from tests.isolation.turns import ALIKE, ROUND, TURNS, operations_in_turn, turn_of_this_run

pytestmark = pytest.mark.django_db


def test_every_operation_has_a_row_and_every_row_an_operation():
    assert not flaws(all_doors())


def test_every_operation_asks_for_the_permission_that_it_should():
    assert not disagreements(all_doors())


def doors_of(turn):
    return operations_in_turn(known_doors(), turn, attrgetter("name"))


def met_by(callers, is_due, doors):  # noqa: F811
    asked = [cell for caller in callers.values() for cell in cells(caller, doors, is_due)]
    return {(str(cell.door), cell.caller.name) for cell in asked}, len(asked)


def test_the_matrix_meets_every_operation_with_every_key(stage, callers):  # noqa: F811
    met, count = met_by(callers, every_cell, known_doors())
    assert met == {(str(door), name) for door in all_doors() for name in CALLERS}
    assert count >= 3_000


def test_over_all_turns_every_operation_is_met():
    turns = {turn: {str(door) for door in doors_of(turn)} for turn in range(0, TURNS, ROUND)}
    assert set.union(*turns.values()) == {str(door) for door in all_doors()}
    assert all(len(names) > 100 for names in turns.values())
    assert {"PATCH souls-one", "PATCH skills-one"} <= turns[ROUND * ALIKE.index("souls")]


@pytest.mark.parametrize("turn", range(0, TURNS, ROUND + 1))
def test_every_run_meets_its_operations_with_keys_of_every_kind(turn, stage, callers):  # noqa: F811
    met, count = met_by(callers, one_in_turn(turn), doors_of(turn))
    doors = {str(door) for door in doors_of(turn)}
    for group in ({"no key"}, {"owner"}, SPENT):
        assert {door for door, name in met if name in group} == doors
    assert {name for _, name in met} == set(CALLERS)
    assert count >= 700


def test_over_all_turns_every_operation_is_met_with_every_limited_key(stage, callers):  # noqa: F811
    chosen = {name: callers[name] for group in (("bot",), *LIMITED) for name in group}
    turns = [met_by(chosen, one_in_turn(turn), known_doors())[0] for turn in range(ROUND)]
    assert set.union(*turns) == {(str(door), name) for door in all_doors() for name in chosen}


@pytest.mark.parametrize("name", CALLERS)
def test_each_operation_answers_as_it_should_to(name, stage, callers, before, tally):  # noqa: F811
    turn = turn_of_this_run()
    tally(run(stage, callers[name], doors_of(turn), before, one_in_turn(turn)), at_least=8)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", CALLERS)
def test_all_cells_of_the_operations_answer_as_they_should_to(name, stage, callers, before, tally):  # noqa: F811
    tally(run(stage, callers[name], known_doors(), before), at_least=180)


@pytest.mark.promise("R1")
def test_a_method_that_an_address_does_not_have_is_refused(stage, callers, before, tally):  # noqa: F811
    tally(run_other_methods(stage, callers, known_doors(), before), at_least=100)


# --- identifiers outside the path ----------------------------------------------------------------------


def test_of_every_field_it_is_said_whether_it_names_a_row():
    assert not strange_words(all_doors())


def a_third():
    return known_doors()[turn_of_this_run() % 3 :: 3]


def test_a_foreign_name_said_by_the_owner_is_answered_as_a_made_up_one(stage, callers, before, tally):  # noqa: F811
    tally(run_bodies(stage, callers["owner"], a_third(), before), at_least=20)
    tally(run_queries(stage, callers["owner"], a_third(), before), at_least=8)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", ["owner", "bot", "owner of elsewhere"])
def test_a_foreign_name_in_a_body_is_refused_as_a_made_up_one_is_to(name, stage, callers, before, tally):  # noqa: F811
    tally(run_bodies(stage, callers[name], known_doors(), before), at_least=8)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", ["owner", "bot", "owner of elsewhere"])
def test_a_foreign_name_in_a_filter_finds_what_a_made_up_one_finds_for(name, stage, callers, before, tally):  # noqa: F811
    tally(run_queries(stage, callers[name], known_doors(), before), at_least=20)


# --- limited keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scopes",
    [{"verbs": ["manage"]}, {"verbs": ["manage", "read"]}, {"channels": None}, {"labels": ["fresh"]}],
)
def test_a_limited_key_makes_no_key_that_may_do_more_than_itself(scopes, stage, callers):  # noqa: F811
    keys = Keys(stage, {})
    scopes = {name: said or [stage.key(HARBOUR, name)] for name, said in scopes.items()}
    keys.add("limited", HARBOUR, owner_of(stage, HARBOUR), "owner", **scopes)
    for kind in ("bot", "admin"):
        answer = call(keys.callers["limited"], "POST", "/api/v1/keys", {"name": f"Wide {kind}", "kind": kind})
        assert answer.status in {403, 422}, f"a {kind} key without limits was made with {scopes}"


@pytest.mark.parametrize("name", ["narrow owner", "narrow bot"])
def test_a_key_for_one_agent_leaves_nothing_that_all_of_them_get(name, stage, callers):  # noqa: F811
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
    assert not {door: status for door, status in answers.items() if status not in {403, 422}}
