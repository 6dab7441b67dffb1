"""Error pages: what happened, what to do, whom to ask."""

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


def page_text(answer):
    return " ".join(answer.content.decode().split())


def test_a_403_page_names_the_roles_and_members_who_can_help(as_viewer, workspace):
    answer = as_viewer.get(f"/w/{workspace.slug}/settings/")
    assert answer.status_code == 403
    page = page_text(answer)
    assert "Allowed roles: owner." in page
    assert "Alice can help in this workspace." in page
    assert "Back to Harbour" in page


def test_a_404_page_links_back_and_reveals_nothing_to_outsiders(as_bob, as_mallory, workspace):
    assert "Back to Harbour" in page_text(as_bob.get(f"/w/{workspace.slug}/souls/none/"))
    page = page_text(as_mallory.get(f"/w/{workspace.slug}/souls/none/"))
    assert "Harbour" not in page
    assert "Go to your workspaces" in page


def test_an_expired_form_explains_how_to_keep_the_input(bob, workspace):
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)
    answer = client.post(f"/w/{workspace.slug}/souls/new/", {"name": "Calm"})
    assert answer.status_code == 403
    assert "open the form again" in page_text(answer)


def test_a_record_page_names_members_to_ask_for_changes(as_viewer, as_bob, workspace):
    make_soul(workspace, "Calm")
    url = f"/w/{workspace.slug}/souls/calm/"
    assert "Your role is viewer. To edit this, ask Bob or Alice." in page_text(as_viewer.get(url))
    assert "whom" not in page_text(as_bob.get(url))
    assert "To edit this" not in page_text(as_bob.get(url))


def test_member_names_are_limited_and_lower_roles_come_first(alice):
    workspace = make_workspace("Crowd", owner=alice)
    for number in range(5):
        join(workspace, make_user(f"Ed{number}"), Role.EDITOR)
    join(workspace, make_user("Nameless", email="plain@example.com"), Role.VIEWER)
    assert format_member_names(workspace, frozenset({Role.OWNER, Role.EDITOR})) == "Ed0, Ed1 or Ed2"
    assert format_member_names(workspace, frozenset({Role.ADMIN})) == ""
