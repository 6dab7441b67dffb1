"""GET /me: every valid key may ask about itself, and learns nothing about others."""

import pytest

from personas.actors import Actor
from personas.api.validation import build_validator, find_schema_errors
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.me_api import ME_SCHEMA
from personas.members.services import change_role
from personas.models import ApiKey, Membership
from personas.roles import Role
from tests.factories import make_agent, make_channel, make_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def deck(workspace):
    return make_channel(workspace, "deck")


def test_a_key_that_may_only_fetch_learns_what_it_may_fetch(key_for, workspace, alice, deck):
    attic = make_channel(workspace, "attic")
    for slug in ("pilot", "cook"):
        make_agent(workspace, slug, channels=[deck, attic])
    bot = key_for(workspace, alice, BOT, verbs=["fetch"], agents=["pilot"], channels=["deck"])
    me = bot.get("me").json()
    key = ApiKey.objects.in_workspace(workspace).get()
    assert find_schema_errors(build_validator(ME_SCHEMA), me) == []
    assert me["workspace"] == {"slug": workspace.slug, "name": workspace.name}
    assert (me["key"]["id"], me["key"]["name"], me["key"]["kind"]) == (key.pk, key.name, BOT)
    assert me["key"]["expires_at"].startswith(f"{key.expires_at:%Y-%m-%dT%H:%M}")
    assert (me["verbs"], me["agents"], me["channels"], me["labels"]) == (
        *(["fetch"], ["pilot"], ["deck"]),
        None,
    )
    assert me["prompts"] == [{"agent": "pilot", "channel": "deck"}]


def test_archived_agents_and_other_workspaces_are_left_out(key_for, workspace, alice, mallory, deck):
    make_agent(workspace, "pilot", channels=[deck])
    theirs = make_workspace("Theirs", owner=mallory)
    make_agent(theirs, "spy", channels=[make_channel(theirs, "deck")])
    me = key_for(workspace, alice, BOT, verbs=["render"]).get("me").json()
    assert me["prompts"] == [{"agent": "pilot", "channel": "deck"}]


def test_a_key_that_serves_no_prompts_gets_none_listed(key_for, workspace, alice, deck):
    make_agent(workspace, "pilot", channels=[deck])
    me = key_for(workspace, alice, ADMIN, verbs=["manage"]).get("me").json()
    assert (me["verbs"], me["prompts"]) == (["manage"], [])


def test_the_verbs_of_an_admin_key_follow_the_role_of_its_creator(key_for, workspace, alice, bob):
    api = key_for(workspace, bob)
    assert "write" in api.get("me").json()["verbs"]
    membership = Membership.objects.in_workspace(workspace).get(user=bob)
    change_role(membership, Role.VIEWER, by=Actor.person(alice))
    assert api.get("me").json()["verbs"] == ["fetch", "render", "read"]


def test_without_a_valid_key_there_is_no_answer(client):
    assert client.get("/api/v1/me").status_code == 401
