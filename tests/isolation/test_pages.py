"""Promise R1 for pages: no user reads or changes data of another workspace."""

from operator import attrgetter

import pytest

from personas.members.services import build_invitation_token
from tests.isolation.canaries import find_unmarked_fields
from tests.isolation.cast import ELSEWHERE, HARBOUR, rolled_back
from tests.isolation.expectations import INSIDE, find_routes_without_row, find_rows_without_route
from tests.isolation.matrix import (
    MEMBERS,
    OUTSIDERS,
    REQUESTERS,
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
from tests.isolation.probe import send_request
from tests.isolation.rows import METHODS
from tests.isolation.substitution import (
    find_untested_forms,
    run_form_fields,
    run_nonsense,
    run_other_forms,
    run_overposting,
    run_queries,
    run_settings_form,
    run_successor,
)
from tests.isolation.turns import ALIKE, ROUND, TURNS, pages_in_turn, turn_of_this_run
from tests.isolation.walk import all_routes

pytestmark = pytest.mark.django_db


# --- coverage ------------------------------------------------------------------------------------------


def test_every_route_has_a_row_and_every_row_a_route():
    assert not find_routes_without_row(all_routes())
    assert not find_rows_without_route(all_routes())


def test_every_text_field_of_both_workspaces_carries_a_canary(stage):
    assert not find_unmarked_fields(stage.workspaces.values())


def test_every_form_that_takes_an_id_is_tested():
    assert not find_untested_forms()


def cells_of(stage, is_due, routes):
    return [
        cell
        for requester in stage.requesters.values()
        for cell in inside_cells(stage, requester, routes, is_due)
    ]


def test_the_matrix_covers_every_route_method_and_requester(stage):
    routes = inside_routes()
    cells = cells_of(stage, every_cell, routes)
    assert set(stage.requesters) == set(REQUESTERS)
    assert {(cell.route.name, cell.method) for cell in cells} == {
        (route.name, method) for route in routes for method in METHODS
    }
    assert {(cell.route.name, cell.requester.name) for cell in cells} == {
        (route.name, name) for route in routes for name in REQUESTERS
    }


def routes_of(turn):
    return pages_in_turn(inside_routes(), turn, attrgetter("name"))


def test_all_turns_together_cover_every_route():
    turns = {turn: {route.name for route in routes_of(turn)} for turn in range(0, TURNS, ROUND)}
    assert set.union(*turns.values()) == {route.name for route in inside_routes()}
    assert all(len(names) > 140 for names in turns.values())
    assert {"souls:edit", "skills:edit", "memories:approve"} <= turns[ROUND * ALIKE.index("souls")]


def test_all_turns_together_try_every_write_with_every_role(stage):
    roles = [stage.requesters[name] for name in MEMBERS]
    routes = [route for route in inside_routes() if is_offered(INSIDE[route.name], "POST")]
    dues = [one_in_turn(turn) for turn in range(ROUND)]
    cells = [cell for role in roles for due in dues for cell in inside_cells(stage, role, routes, due)]
    met = {(cell.route.name, cell.requester.name) for cell in cells if cell.method == "POST"}
    assert met == {(route.name, name) for route in routes for name in MEMBERS}


@pytest.mark.parametrize("turn", range(0, TURNS, ROUND + 1))
def test_every_turn_requests_its_routes_as_member_and_outsider(turn, stage):
    routes = routes_of(turn)
    cells = cells_of(stage, one_in_turn(turn), routes)
    met = {(cell.route.name, cell.requester.name, cell.method) for cell in cells}
    for route in routes:
        page = INSIDE[route.name]
        always = {("anonymous", "GET"), ("anonymous", "POST")}
        always |= {("viewer", "POST")} if page.write else set()
        assert met >= {(route.name, *request) for request in always}
        assert any((route.name, "owner", way) in met for way in ("GET", "POST") if is_offered(page, way))
    for group in (STRANGERS, {"stranger with a workspace"}):
        assert {route for route, name, _ in met if name in group} == {route.name for route in routes}
    named = {route.name for route in routes if named_rows(route)}
    assert {cell.route.name for cell in cells if cell.target == "crossed"} == named
    assert {name for _, name, _ in met} == set(REQUESTERS)
    assert len(cells) >= 1_000


# --- the cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REQUESTERS)
def test_workspace_pages_return_the_expected_status_in_this_turn(name, stage, tally):
    turn = turn_of_this_run()
    tally(run_inside(stage, stage.requesters[name], routes_of(turn), one_in_turn(turn)), at_least=10)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", REQUESTERS)
def test_all_workspace_pages_return_the_expected_status(name, stage, tally):
    tally(run_inside(stage, stage.requesters[name], inside_routes()), at_least=300)


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTSIDERS)
def test_pages_outside_workspaces_show_no_tenant_data_in_this_turn(name, stage, tally):
    tally(run_outside(stage, stage.requesters[name], outside_routes(), turn_of_this_run()), at_least=15)


@pytest.mark.promise("R1")
@pytest.mark.hard
@pytest.mark.parametrize("name", OUTSIDERS)
def test_all_pages_outside_workspaces_show_no_tenant_data(name, stage, tally):
    tally(run_outside(stage, stage.requesters[name], outside_routes()), at_least=150)


# --- ids outside the path ------------------------------------------------------------------------------


@pytest.mark.slow
def test_foreign_ids_in_forms_are_rejected_on_their_fields_in_this_turn(stage, tally):
    tally(run_form_fields(stage, turn_of_this_run()), at_least=10)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_all_foreign_ids_in_forms_are_rejected_on_their_fields(stage, tally):
    tally(run_form_fields(stage), at_least=20)


def test_a_memory_cannot_be_superseded_by_a_foreign_one(stage, tally):
    tally(run_successor(stage))


def test_a_foreign_row_is_not_a_choice_in_other_forms(stage, tally):
    tally(run_other_forms(stage), at_least=3)


def test_a_foreign_record_is_not_a_choice_in_prompt_settings(stage, tally):
    tally(run_settings_form(stage), at_least=3)


@pytest.mark.slow
def test_foreign_ids_and_slugs_in_filters_are_ignored_in_this_turn(stage, tally):
    tally(run_queries(stage, turn_of_this_run()), at_least=18)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_all_foreign_ids_and_slugs_in_filters_are_ignored(stage, tally):
    tally(run_queries(stage), at_least=100)


@pytest.mark.slow
def test_extra_form_fields_are_ignored_in_this_turn(stage, tally):
    tally(run_overposting(stage, turn_of_this_run()), at_least=11)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_all_extra_form_fields_are_ignored(stage, tally):
    tally(run_overposting(stage), at_least=22)


@pytest.mark.slow
def test_malformed_ids_cause_no_server_error_in_this_turn(stage, tally):
    tally(run_nonsense(stage, turn_of_this_run()), at_least=15)


@pytest.mark.promise("R1")
@pytest.mark.hard
def test_no_malformed_id_causes_a_server_error(stage, tally):
    tally(run_nonsense(stage), at_least=100)


# --- invitations: the one page that outsiders may open -------------------------------------------------


@pytest.mark.parametrize("name", REQUESTERS)
def test_an_invitation_shows_only_inviter_and_workspace(name, stage):
    requester, invitation = stage.requesters[name], stage.row(ELSEWHERE, "invitations")
    allowed = [invitation.email, invitation.workspace.name, invitation.workspace.slug]
    allowed += [invitation.invited_by.name, invitation.invited_by.email]
    path = f"/join/{build_invitation_token(invitation)}/"
    for method in ("GET", "POST"):
        with rolled_back():
            answer = send_request(requester, method, path)
            assert answer.status == (410 if method == "POST" and requester.user else 200)
            assert not leaks(stage, requester, answer, " ".join(allowed))
            assert not answer.wrote_tenant_rows


def test_members_see_their_own_canaries(stage):
    answer = send_request(stage.requesters["viewer"], "GET", f"/w/{stage.workspaces[HARBOUR].slug}/agents/")
    assert stage.row(HARBOUR, "agents").name in answer.visible_text
    assert stage.row(ELSEWHERE, "agents").name not in answer.visible_text


def test_a_404_page_runs_no_queries_for_navigation(stage, settings, django_assert_max_num_queries):
    # A session that was last seen a minute ago would be saved, which is one more query.
    settings.SESSION_TOUCH_SECONDS = settings.SESSION_IDLE_SECONDS
    path = f"/w/{stage.workspaces[HARBOUR].slug}/agents/nobody/"
    # Session, user, memberships, record; not the inbox count.
    with django_assert_max_num_queries(4):
        assert send_request(stage.requesters["owner"], "GET", path).status == 404
