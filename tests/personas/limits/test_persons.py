"""Workspaces count for one person, who has a limit: no sequence of actions avoids it or burdens others."""

import threading

import pytest
from django.db import connection

from personas.actors import Actor
from personas.api import rate_limits
from personas.api.problems import ProblemError
from personas.limits import persons
from personas.limits.persons import WorkspaceLimitReached, find_person_id, forget_persons
from personas.members.services import change_role, remove_member, transfer_ownership
from personas.models import AuditEvent, Membership, User, Workspace
from personas.roles import Role
from personas.workspaces.deletion import delete_workspace
from personas.workspaces.services import create_workspace, take_over_workspace
from tests.factories import join, make_operator, make_user, make_workspace, signed_in, signed_in_operator

pytestmark = pytest.mark.django_db
LIMIT = 3


@pytest.fixture(autouse=True)
def low_limit(settings):
    settings.DRAMATIS_WORKSPACES_PER_PERSON = LIMIT


@pytest.fixture
def workspace(alice):
    return make_workspace("Harbour", owner=alice)


def fill(user: User, count: int = LIMIT) -> list[Workspace]:
    have = Workspace.objects.filter(counted_for=user).count()
    return [create_workspace(f"W{n}", f"{user.pk}-w{n}", owner=user) for n in range(have, count)]


def membership(workspace: Workspace, user: User) -> Membership:
    return Membership.objects.in_workspace(workspace).get(user=user)


def counted_for(workspace: Workspace) -> User | None:
    return Workspace.objects.get(pk=workspace.pk).counted_for


# --- the limit ------------------------------------------------------------------------------------------


def test_page_and_key_share_the_limit_and_name_it(alice, workspace, key_for):
    browser, key = signed_in(alice), key_for(workspace, alice)
    assert browser.post("/workspaces/new/", {"name": "Quay", "slug": "quay"}).status_code == 302
    assert key.post("workspaces", {"name": "Pier", "slug": "pier"}).status_code == 201
    refused = key.post("workspaces", {"name": "Dock", "slug": "dock"})
    assert (refused.status_code, refused.json()["code"]) == (429, "workspace_limit_reached")
    for words in ("3 workspaces count for alice@example.com", "operator", "DRAMATIS_WORKSPACES_PER_PERSON"):
        assert words in refused.json()["detail"]
    page = browser.post("/workspaces/new/", {"name": "Dock", "slug": "dock"})
    assert page.status_code == 429
    assert "3 workspaces count for alice@example.com" in page.content.decode()
    assert Workspace.objects.filter(counted_for=alice).count() == LIMIT


def test_no_limit_and_a_limit_for_one_account(alice, workspace, settings):
    fill(alice)
    operator = make_operator()
    form = {"name": "Alice", "timezone": "UTC", "is_active": "on", "workspace_limit": str(LIMIT + 1)}
    path = f"/operator/personas/user/{alice.pk}/change/"
    assert signed_in_operator(operator).post(path, form).status_code == 302
    create_workspace("One more", "one-more", owner=alice)
    with pytest.raises(WorkspaceLimitReached):
        create_workspace("Too many", "too-many", owner=alice)
    User.objects.filter(pk=alice.pk).update(workspace_limit=None)
    settings.DRAMATIS_WORKSPACES_PER_PERSON = 0
    create_workspace("Unlimited", "unlimited", owner=alice)


@pytest.mark.django_db(transaction=True)
def test_simultaneous_requests_do_not_exceed_it():
    alice = make_user("Alice")
    results: list[str] = []

    def create(number: int) -> None:
        try:
            create_workspace(f"W{number}", f"w{number}", owner=alice)
            results.append("created")
        except WorkspaceLimitReached:
            results.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=create, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == ["created"] * LIMIT + ["refused"] * 5


# --- sequences ------------------------------------------------------------------------------------------


def test_deleting_and_creating_in_turn_does_not_avoid_it(alice, workspace):
    for one in [workspace, *fill(alice)]:
        delete_workspace(one, by=Actor.person(alice))
    with pytest.raises(WorkspaceLimitReached):
        create_workspace("Again", "again", owner=alice)


@pytest.mark.parametrize("ending", ["leaves", "transfers", "transfers and leaves", "gives up the role"])
def test_giving_a_workspace_away_does_not_avoid_it_and_burdens_nobody(ending, alice, bob, workspace):
    """Bob has agreed to nothing: only his own act makes a workspace count for him."""
    fill(alice)
    joined = join(workspace, bob, Role.VIEWER)
    by = Actor.person(alice)
    if ending.startswith("transfers"):
        transfer_ownership(membership(workspace, alice), joined, by=by)
    else:
        change_role(joined, Role.OWNER, by=by)
    if ending.endswith("leaves"):
        remove_member(membership(workspace, alice), by=by)
    if ending == "gives up the role":
        change_role(membership(workspace, alice), Role.VIEWER, by=by)
    assert counted_for(workspace) == alice
    with pytest.raises(WorkspaceLimitReached):
        create_workspace("Again", "again", owner=alice)
    take_over_workspace(workspace, by=Actor.person(bob))
    assert counted_for(workspace) == bob
    create_workspace("Again", "again", owner=alice)


def test_an_owner_who_takes_over_needs_a_free_place(alice, bob, workspace):
    join(workspace, bob, Role.OWNER)
    fill(bob)
    with pytest.raises(WorkspaceLimitReached):
        take_over_workspace(workspace, by=Actor.person(bob))
    page = signed_in(bob).post("/w/harbour/settings/take-over/", follow=True).content.decode()
    assert "3 workspaces count for bob@example.com" in page
    assert counted_for(workspace) == alice


@pytest.mark.parametrize("role", [Role.ADMIN, Role.EDITOR, Role.VIEWER])
def test_only_owners_take_over(role, alice, bob, workspace):
    join(workspace, bob, role)
    assert signed_in(bob).post("/w/harbour/settings/take-over/").status_code == 403
    assert counted_for(workspace) == alice


def test_the_page_says_for_whom_it_counts_and_the_audit_who_took_over(alice, bob, workspace):
    join(workspace, bob, Role.OWNER)
    assert "counts towards your limits" in signed_in(alice).get("/w/harbour/settings/").content.decode()
    browser = signed_in(bob)
    assert "the limits of alice@example.com" in browser.get("/w/harbour/settings/").content.decode()
    browser.post("/w/harbour/settings/take-over/")
    event = AuditEvent.objects.in_workspace(workspace).get(verb="took over")
    assert (event.before, event.after) == ({"counted_for": alice.email}, {"counted_for": bob.email})


@pytest.mark.parametrize("action", ["remove", "demote"])
def test_who_removes_or_demotes_the_person_becomes_it(action, alice, bob, workspace):
    """Otherwise Bob could use up what Alice's other workspaces need, and she could do nothing about it."""
    join(workspace, bob, Role.OWNER)
    fill(bob)
    act = {
        "remove": lambda: remove_member(membership(workspace, alice), by=Actor.person(bob)),
        "demote": lambda: change_role(membership(workspace, alice), Role.VIEWER, by=Actor.person(bob)),
    }[action]
    with pytest.raises(WorkspaceLimitReached):
        act()
    assert membership(workspace, alice).role == Role.OWNER
    User.objects.filter(pk=bob.pk).update(workspace_limit=10)
    act()
    assert counted_for(workspace) == bob


# --- rate limits ----------------------------------------------------------------------------------------


def test_all_workspaces_of_a_person_share_a_rate_limit(alice, bob, workspace, settings):
    settings.DRAMATIS_RATE_LIMITS, settings.DRAMATIS_PERSON_SHARE = {"read": (10, 4)}, 2
    settings.DRAMATIS_WORKSPACES_PER_PERSON, now = 50, [0.0]
    others, limiter = fill(alice, 6), rate_limits.RateLimiter(lambda: now[0])
    served, problems = 0, []
    for number, one in enumerate([workspace, *others] * 4):
        try:
            rate_limits.charge_rate_limit(number, one.pk, "read", limiter=limiter)
            served += 1
        except ProblemError as error:
            problems.append(error.problem)
    assert served == 8
    assert {one.status for one in problems} == {429}
    assert "DRAMATIS_PERSON_SHARE" in problems[-1].detail
    rate_limits.charge_rate_limit(1, make_workspace("Elsewhere", owner=bob).pk, "read", limiter=limiter)
    # One workspace alone cannot use up what the person's others need.
    now[0] += 600
    for number in range(4):
        rate_limits.charge_rate_limit(100 + number, workspace.pk, "read", limiter=limiter)
    with pytest.raises(ProblemError, match="Rate limit of this workspace"):
        rate_limits.charge_rate_limit(104, workspace.pk, "read", limiter=limiter)
    rate_limits.charge_rate_limit(200, others[0].pk, "read", limiter=limiter)


@pytest.mark.planted
def test_a_rate_limit_per_workspace_only_is_found(alice, bob, settings, monkeypatch):
    monkeypatch.setattr(rate_limits, "find_person_id", lambda workspace_id: None)
    with pytest.raises(AssertionError):
        test_all_workspaces_of_a_person_share_a_rate_limit(
            alice, bob, make_workspace("Harbour", owner=alice), settings
        )


@pytest.mark.planted
def test_a_limit_that_ignores_deleted_workspaces_is_found(alice, workspace, monkeypatch):
    monkeypatch.setattr(persons, "check_workspace_limit", lambda user: None)
    monkeypatch.setattr("personas.workspaces.services.check_workspace_limit", lambda user: None)
    with pytest.raises(pytest.fail.Exception):
        test_deleting_and_creating_in_turn_does_not_avoid_it(alice, workspace)


def test_the_person_is_remembered_for_a_short_time(alice, bob, workspace, django_assert_num_queries):
    forget_persons()
    assert find_person_id(workspace.pk) == alice.pk
    with django_assert_num_queries(0):
        assert find_person_id(workspace.pk) == alice.pk
    join(workspace, bob, Role.OWNER)
    take_over_workspace(workspace, by=Actor.person(bob))
    assert find_person_id(workspace.pk) == bob.pk
