"""Pages that refuse, in words that help: what happened, what to do, whom to ask."""

import pytest
from django.test import Client

from personas.roles import Role
from personas.templatetags.permissions import format_member_names
from tests.factories import join, make_soul, make_user, make_workspace, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def as_viewer(workspace):
    vera = make_user("Vera")
    join(workspace, vera, Role.VIEWER)
    return signed_in(vera)


def words_of(answer):
    return " ".join(answer.content.decode().split())


def test_a_refusal_names_the_roles_and_the_people_who_can_help(as_viewer, workspace):
    answer = as_viewer.get(f"/w/{workspace.slug}/settings/")
    assert answer.status_code == 403
    page = words_of(answer)
    assert "It takes one of: owner." in page
    assert "In this workspace Alice can help." in page
    assert "Back to Harbour" in page


def test_a_missing_record_leads_back_and_a_strange_workspace_tells_nothing(as_bob, as_mallory, workspace):
    assert "Back to Harbour" in words_of(as_bob.get(f"/w/{workspace.slug}/souls/none/"))
    page = words_of(as_mallory.get(f"/w/{workspace.slug}/souls/none/"))
    assert "Harbour" not in page
    assert "Go to your workspaces" in page


def test_an_expired_form_says_how_to_keep_what_was_typed(bob, workspace):
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)
    answer = client.post(f"/w/{workspace.slug}/souls/new/", {"label": "Calm"})
    assert answer.status_code == 403
    assert "Back button brings back what you typed" in words_of(answer)


def test_a_record_tells_those_who_may_not_change_it_whom_to_ask(as_viewer, as_bob, workspace):
    make_soul(workspace, "Calm")
    address = f"/w/{workspace.slug}/souls/calm/"
    assert "You are viewer here. To change this, ask Bob or Alice." in words_of(as_viewer.get(address))
    assert "whom" not in words_of(as_bob.get(address))
    assert "To change" not in words_of(as_bob.get(address))


def test_names_are_few_and_those_nearest_to_the_work_come_first(alice):
    crowd = make_workspace("Crowd", owner=alice)
    for number in range(5):
        join(crowd, make_user(f"Ed{number}"), Role.EDITOR)
    join(crowd, make_user("Nameless", email="plain@example.com"), Role.VIEWER)
    assert format_member_names(crowd, frozenset({Role.OWNER, Role.EDITOR})) == "Ed0, Ed1 or Ed2"
    assert format_member_names(crowd, frozenset({Role.ADMIN})) == ""
