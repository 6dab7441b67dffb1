"""Promise R1 for pages: no user reads or changes data of another workspace."""

from operator import attrgetter

import pytest

from personas.members.services import build_invitation_token
from tests.isolation.canaries import unmarked_fields
from tests.isolation.cast import ELSEWHERE, HARBOUR, undone
from tests.isolation.expectations import INSIDE, rows_without_a_route, without_a_row
from tests.isolation.matrix import (
    ASKERS,
    MEMBERS,
    OUTSIDERS,
    STRANGERS,
    every_cell,
    inside_cells,
    inside_routes,
    is_offered,
    leaks,
    named_rows,
    one_in_turn,
    outside_routes,
    run_inside,
    run_outside,
)
from tests.isolation.probe import ask
from tests.isolation.rows import METHODS
from tests.isolation.substitution import (
    run_form_fields,
    run_nonsense,
    run_other_forms,
    run_overposting,
    run_queries,
    run_settings_form,
    run_successor,
    unlisted_forms,
)
from tests.isolation.turns import ALIKE, ROUND, TURNS, pages_in_turn, turn_of_this_run
from tests.isolation.walk import all_routes

pytestmark = pytest.mark.django_db


# --- coverage ------------------------------------------------------------------------------------------


def test_every_route_has_a_row_and_every_row_a_route():
    assert not without_a_row(all_routes())
    assert not rows_without_a_route(all_routes())


def test_every_text_field_of_both_workspaces_carries_a_canary(stage):
    assert not unmarked_fields(stage.workspaces.values())


def test_every_form_that_takes_an_id_is_asked():
    assert not unlisted_forms()


def cells_of(stage, is_due, routes):
    return [cell for asker in stage.askers.values() for cell in inside_cells(stage, asker, routes, is_due)]


def test_the_matrix_meets_every_route_with_every_method_from_everybody(stage):
    routes = inside_routes()
    cells = cells_of(stage, every_cell, routes)
    assert set(stage.askers) == set(ASKERS)
    assert {(cell.route.name, cell.method) for cell in cells} == {
        (route.name, method) for route in routes for method in METHODS
    }
    assert {(cell.route.name, cell.asker.name) for cell in cells} == {
        (route.name, name) for route in routes for name in ASKERS
    }


def routes_of(turn):
    return pages_in_turn(inside_routes(), turn, attrgetter("name"))


def test_over_all_turns_every_route_is_met():
    turns = {turn: {route.name for route in routes_of(turn)} for turn in range(0, TURNS, ROUND)}
    assert set.union(*turns.values()) == {route.name for route in inside_routes()}
    assert all(len(names) > 140 for names in turns.values())
    assert {"souls:edit", "skills:edit", "memories:approve"} <= turns[ROUND * ALIKE.index("souls")]


def test_over_all_turns_every_role_writes_wherever_it_is_tried_at_all(stage):
    roles = [stage.askers[name] for name in MEMBERS]
    routes = [route for route in inside_routes() if is_offered(INSIDE[route.name], "POST")]
    dues = [one_in_turn(turn) for turn in range(ROUND)]
    cells = [cell for role in roles for due in dues for cell in inside_cells(stage, role, routes, due)]
    met = {(cell.route.name, cell.asker.name) for cell in cells if cell.method == "POST"}
    assert met == {(route.name, name) for route in routes for name in MEMBERS}


@pytest.mark.parametrize("turn", range(0, TURNS, ROUND + 1))
def test_every_run_meets_its_routes_from_inside_and_outside(turn, stage):
    routes = routes_of(turn)
    cells = cells_of(stage, one_in_turn(turn), routes)
    met = {(cell.route.name, cell.asker.name, cell.method) for cell in cells}
    for route in routes:
        page = INSIDE[route.name]
        always = {("anonymous", "GET"), ("anonymous", "POST")}
        always |= {("viewer", "POST")} if page.write else set()
        assert met >= {(route.name, *said) for said in always}
        assert any((route.name, "owner", way) in met for way in ("GET", "POST") if is_offered(page, way))
    for group in (STRANGERS, {"stranger with a workspace"}):
        assert {route for route, name, _ in met if name in group} == {route.name for route in routes}
    named = {route.name for route in routes if named_rows(route)}
    assert {cell.route.name for cell in cells if cell.target == "crossed"} == named
    assert {name for _, name, _ in met} == set(ASKERS)
    assert len(cells) >= 1_000


# --- the cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ASKERS)
def test_each_page_of_a_workspace_answers_as_the_table_says_to(name, stage, tally):
    turn = turn_of_this_run()
    tally(run_inside(stage, stage.askers[name], routes_of(turn), one_in_turn(turn)), at_least=10)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", ASKERS)
def test_all_cells_of_a_workspace_answer_as_the_table_says_to(name, stage, tally):
    tally(run_inside(stage, stage.askers[name], inside_routes()), at_least=300)


@pytest.mark.parametrize("name", OUTSIDERS)
def test_no_page_outside_workspaces_shows_any_of_them_to(name, stage, tally):
    tally(run_outside(stage, stage.askers[name], outside_routes(), turn_of_this_run()), at_least=15)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", OUTSIDERS)
def test_no_cell_outside_workspaces_shows_any_of_them_to(name, stage, tally):
    tally(run_outside(stage, stage.askers[name], outside_routes()), at_least=150)


# --- ids outside the path ------------------------------------------------------------------------------


def test_a_foreign_id_in_a_form_is_refused_on_its_field(stage, tally):
    tally(run_form_fields(stage, turn_of_this_run()), at_least=10)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_all_foreign_ids_in_forms_are_refused_on_their_fields(stage, tally):
    tally(run_form_fields(stage), at_least=20)


def test_a_foreign_memory_cannot_take_a_memorys_place(stage, tally):
    tally(run_successor(stage))


def test_a_foreign_row_is_no_choice_in_the_forms_beside_a_record(stage, tally):
    tally(run_other_forms(stage), at_least=3)


def test_a_foreign_record_is_no_choice_among_the_settings(stage, tally):
    tally(run_settings_form(stage), at_least=3)


def test_foreign_ids_and_words_in_filters_are_as_if_unsaid(stage, tally):
    tally(run_queries(stage, turn_of_this_run()), at_least=18)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_all_foreign_ids_and_words_in_filters_are_as_if_unsaid(stage, tally):
    tally(run_queries(stage), at_least=100)


def test_fields_a_form_does_not_have_are_not_taken(stage, tally):
    tally(run_overposting(stage, turn_of_this_run()), at_least=11)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_all_fields_that_a_form_does_not_have_are_not_taken(stage, tally):
    tally(run_overposting(stage), at_least=22)


def test_nonsense_in_place_of_ids_is_refused_without_an_error_of_ours(stage, tally):
    tally(run_nonsense(stage, turn_of_this_run()), at_least=15)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_all_nonsense_in_place_of_ids_is_refused_without_an_error_of_ours(stage, tally):
    tally(run_nonsense(stage), at_least=100)


# --- invitations: the one page that outsiders may open -------------------------------------------------


@pytest.mark.parametrize("name", ASKERS)
def test_an_invitation_shows_who_invites_to_what_and_no_more_to(name, stage):
    asker, invitation = stage.askers[name], stage.row(ELSEWHERE, "invitations")
    told = [invitation.email, invitation.workspace.name, invitation.workspace.slug]
    told += [invitation.invited_by.name, invitation.invited_by.email]
    path = f"/join/{build_invitation_token(invitation)}/"
    for method in ("GET", "POST"):
        with undone():
            answer = ask(asker, method, path)
            assert answer.status == (410 if method == "POST" and asker.user else 200)
            assert not leaks(stage, asker, answer, " ".join(told))
            assert not answer.wrote_tenant_rows


def test_the_positive_control_members_do_see_their_own_canaries(stage):
    answer = ask(stage.askers["viewer"], "GET", f"/w/{stage.workspaces[HARBOUR].slug}/agents/")
    assert stage.row(HARBOUR, "agents").name in answer.seen
    assert stage.row(ELSEWHERE, "agents").name not in answer.seen


def test_a_refusal_has_no_frame_and_asks_nothing_for_one(stage, django_assert_max_num_queries):
    path = f"/w/{stage.workspaces[HARBOUR].slug}/agents/nobody/"
    # Session, user, memberships, record; not the inbox count.
    with django_assert_max_num_queries(4):
        assert ask(stage.askers["owner"], "GET", path).status == 404
