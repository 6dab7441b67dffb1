"""Workspace settings: the release policy of new agents, and a second factor that all members need."""

from collections import defaultdict

import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client
from django.urls import Resolver404, resolve

from personas.actors import Actor
from personas.api_keys.format import BOT
from personas.errors import InvalidInput
from personas.models import Agent, AuditEvent, ReleasePolicy, User, Workspace
from personas.tenancy import middleware
from personas.workspaces.services import edit_workspace
from tests.factories import make_agent
from tests.isolation.walk import all_routes

pytestmark = pytest.mark.django_db

SETUP_PAGE = "/accounts/2fa/"


def add_factor(user: User) -> None:
    TOTP.activate(user, generate_totp_secret())


def save(client: Client, workspace: Workspace, **values: str):
    form = {"name": workspace.name, "default_release_policy": workspace.default_release_policy}
    answer = client.post(f"/w/{workspace.slug}/settings/", form | values)
    workspace.refresh_from_db()
    return answer


def require_factor(workspace: Workspace) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(requires_second_factor=True)


# --- release policy of new agents ------------------------------------------------------------------------


@pytest.fixture
def reviewing(as_alice, workspace):
    make_agent(workspace, "before")
    assert save(as_alice, workspace, default_release_policy="reviewed").status_code == 302
    return workspace


def get_policy(workspace: Workspace, slug: str) -> str:
    return Agent.objects.in_workspace(workspace).get(slug=slug).release_policy


def test_the_default_concerns_new_agents_only_and_is_audited(reviewing):
    assert get_policy(reviewing, "before") == ReleasePolicy.AUTOMATIC
    assert make_agent(reviewing, "after").release_policy == ReleasePolicy.REVIEWED
    event = AuditEvent.objects.in_workspace(reviewing).get(verb="changed settings")
    assert (event.before, event.after) == (
        {"default_release_policy": "automatic"},
        {"default_release_policy": "reviewed"},
    )


def test_the_form_of_a_new_agent_selects_the_default(reviewing, as_alice):
    page = as_alice.get(f"/w/{reviewing.slug}/agents/new/").content.decode()
    assert '<option value="reviewed" selected>' in page
    page = as_alice.get(f"/w/{reviewing.slug}/agents/before/edit/").content.decode()
    assert '<option value="automatic" selected>' in page


def test_quick_start_and_import_use_the_default(reviewing, as_alice):
    values = {"name": "Desk", "soul": "", "channel": "web"}
    page = as_alice.post(f"/w/{reviewing.slug}/quick-start/", values, follow=True)
    assert get_policy(reviewing, "desk") == ReleasePolicy.REVIEWED
    assert "Releases of this agent require approval" in page.content.decode()
    as_alice.post(f"/w/{reviewing.slug}/agents/import/", {"text": '{"name": "Nova"}'})
    assert get_policy(reviewing, "nova") == ReleasePolicy.REVIEWED


def test_the_api_uses_the_default_unless_the_request_has_a_policy(reviewing, admin, key_for, alice):
    assert admin.post("agents", {"name": "One", "slug": "one"}).json()["release_policy"] == "reviewed"
    body = {"name": "Two", "slug": "two", "release_policy": "automatic", "reason": "A test."}
    assert admin.post("agents", body).status_code == 422
    overrider = key_for(reviewing, alice, verbs=["write", "override"])
    assert overrider.post("agents", body).json()["release_policy"] == "automatic"


def test_an_unknown_policy_is_rejected(as_alice, workspace):
    assert save(as_alice, workspace, default_release_policy="never").status_code == 422
    with pytest.raises(InvalidInput):
        edit_workspace(workspace, {"default_release_policy": "never"}, by=Actor(label="test"))


# --- second factor ---------------------------------------------------------------------------------------


def list_pages(workspace: Workspace) -> list[str]:
    """Return a path for every route of the workspace; whether the record exists does not matter."""
    values = defaultdict(lambda: "1", workspace=workspace.slug)
    return [path for route in all_routes() if route.is_inside and is_route(path := route.path(values))]


def is_route(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def find_open_pages(client: Client, workspace: Workspace, method: str) -> list[str]:
    """Return the pages of the workspace that do not redirect to the page that sets up a second factor."""
    answers = {path: client.generic(method, path) for path in list_pages(workspace)}
    return [
        f"{answer.status_code} {path}"
        for path, answer in answers.items()
        if (answer.status_code, answer.headers.get("Location")) != (302, SETUP_PAGE)
    ]


def test_a_member_without_a_second_factor_is_redirected_from_every_page(workspace, as_bob, bob, monkeypatch):
    require_factor(workspace)
    assert len(list_pages(workspace)) > 100
    for method in ("GET", "POST", "DELETE"):
        assert not find_open_pages(as_bob, workspace, method)
    assert as_bob.get(SETUP_PAGE).status_code == 200
    assert as_bob.get("/").status_code == 302
    with monkeypatch.context() as patch:
        # Planted fault: the check does nothing.
        patch.setattr(middleware, "require_second_factor", lambda request: None)
        assert len(find_open_pages(as_bob, workspace, "DELETE")) > 100
    add_factor(bob)
    assert as_bob.get(f"/w/{workspace.slug}/").status_code == 200


def test_a_member_without_a_second_factor_can_set_one_up(workspace, as_bob):
    require_factor(workspace)
    page = as_bob.get(f"/w/{workspace.slug}/", follow=True)
    assert "This workspace requires a second factor" in page.content.decode()
    assert as_bob.get("/accounts/2fa/totp/activate/").status_code == 200


def test_an_open_page_goes_to_the_setup_instead_of_showing_it_inside(workspace, as_bob):
    require_factor(workspace)
    answer = as_bob.get(f"/w/{workspace.slug}/notifications/bell/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"]) == (204, SETUP_PAGE)


def test_other_workspaces_and_outsiders_are_not_affected(workspace, elsewhere, as_mallory):
    require_factor(workspace)
    assert as_mallory.get(f"/w/{elsewhere.slug}/").status_code == 200
    assert as_mallory.get(f"/w/{workspace.slug}/").status_code == 404


def test_an_owner_turns_it_on_only_with_a_second_factor_of_their_own(workspace, as_alice, alice):
    answer = save(as_alice, workspace, requires_second_factor="on")
    assert (answer.status_code, workspace.requires_second_factor) == (422, False)
    assert "Set up a second factor for your own account first." in answer.content.decode()
    add_factor(alice)
    assert save(as_alice, workspace, requires_second_factor="on").status_code == 302
    assert workspace.requires_second_factor
    event = AuditEvent.objects.in_workspace(workspace).get(verb="changed settings")
    assert event.after == {"requires_second_factor": True}
    assert (
        "1 of 2 members have a second factor."
        in as_alice.get(f"/w/{workspace.slug}/settings/").content.decode()
    )


def test_keys_work_without_a_second_factor(workspace, key_for, alice):
    require_factor(workspace)
    assert key_for(workspace, alice).get("agents").status_code == 200
    assert key_for(workspace, alice, kind=BOT).get("me").status_code == 200


def test_the_api_has_the_same_rule(workspace, admin, alice):
    answer = admin.patch("workspace", {"requires_second_factor": True}, "*")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/requires_second_factor")
    add_factor(alice)
    answer = admin.patch(
        "workspace", {"requires_second_factor": True, "default_release_policy": "reviewed"}, "*"
    )
    assert answer.status_code == 200
    assert (answer.json()["requires_second_factor"], answer.json()["default_release_policy"]) == (
        True,
        "reviewed",
    )
