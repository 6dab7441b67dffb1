"""Trusted bots: keys with the action `activate` write active memories, which nobody approves first."""

import pytest

from personas.actors import Actor
from personas.api_keys.descriptions import describe_verbs
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import BadScopes, can_activate_memories, normalise_scopes
from personas.api_keys.services import create_key, rotate_key
from personas.models import ApiKey, AuditEvent, Memory
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.releases.services import approve_release, request_release, run_release
from tests.factories import make_agent
from tests.personas.api_keys.test_key_pages import form_data
from tests.prompts.serving.serving_stage import fetch, make_stage

pytestmark = pytest.mark.django_db
TRUSTED = ["fetch", "read", "write", "activate"]
FACT = "The reactor door is blue."


def get_memory(workspace):
    return Memory.objects.in_workspace(workspace).get()


def test_a_key_without_the_action_proposes(key_for, workspace, alice):
    for scopes in ({}, {"verbs": ["read", "write"]}):
        bot = key_for(workspace, alice, BOT, **scopes)
        assert bot.post("memories", {"text": FACT, "status": "active"}).status_code == 422
        for body in ({"text": FACT}, {"text": FACT, "status": "proposed"}):
            answer = bot.post("memories", body)
            assert (answer.status_code, answer.json()["status"]) == (201, "proposed"), answer.content
    verbs = AuditEvent.objects.in_workspace(workspace).filter(kind="memory").values_list("verb", flat=True)
    assert set(verbs) == {"created"}


def test_a_key_without_the_action_is_told_that_it_cannot_write_an_active_memory(key_for, workspace, alice):
    answer = key_for(workspace, alice, BOT).post("memories", {"text": FACT, "status": "active"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/status")
    assert "`activate`" in answer.json()["detail"]
    assert not Memory.objects.in_workspace(workspace).exists()


def test_a_trusted_bot_writes_active_memories_that_the_audit_log_can_filter(
    key_for, workspace, alice, as_alice
):
    bot = key_for(workspace, alice, BOT, verbs=TRUSTED)
    assert bot.post("memories", {"text": FACT}).json()["status"] == "active"
    assert bot.post("memories", {"text": "Maybe.", "status": "proposed"}).json()["status"] == "proposed"
    events = AuditEvent.objects.in_workspace(workspace).filter(kind="memory").order_by("pk")
    assert [(event.verb, event.actor_label) for event in events] == [
        ("created without approval", "bot:Key 1"),
        ("created", "bot:Key 1"),
    ]
    page = as_alice.get(f"/w/{workspace.slug}/audit/", {"verb": "created without approval"})
    assert FACT in page.content.decode()
    assert "Maybe." not in page.content.decode()


def test_a_trusted_bot_is_limited_to_its_agents(key_for, workspace, alice):
    make_agent(workspace, "mira"), make_agent(workspace, "nils")
    bot = key_for(workspace, alice, BOT, verbs=TRUSTED, agents=["mira"])
    assert bot.post("memories", {"text": FACT, "agent": "mira"}).json()["status"] == "active"
    for body in ({"text": FACT}, {"text": FACT, "agent": "nils"}, {"text": FACT, "agent": None}):
        assert bot.post("memories", body).status_code == 422, body
    assert get_memory(workspace).agent.slug == "mira"


def test_a_trusted_bot_neither_edits_nor_approves(key_for, workspace, alice, by_alice):
    bot = key_for(workspace, alice, BOT, verbs=TRUSTED)
    created = bot.post("memories", {"text": FACT})
    path = f"memories/{created.json()['id']}"
    assert bot.patch(path, {"text": "Else."}, created["ETag"]).status_code == 403
    assert bot.delete(path, created["ETag"]).status_code == 403
    assert bot.post(f"{path}:approve").status_code == 403


def test_the_action_is_for_bots_that_write():
    with pytest.raises(BadScopes, match="requires “write”"):
        normalise_scopes({"verbs": ["read", "activate"]}, BOT)
    with pytest.raises(BadScopes, match="is only for bot keys"):
        normalise_scopes({"verbs": ["write", "activate"]}, ADMIN)
    assert not can_activate_memories({}, BOT)
    assert not can_activate_memories({"verbs": TRUSTED}, ADMIN)
    assert "write active memories without approval" in describe_verbs({"verbs": TRUSTED}, BOT)


def test_rotation_keeps_the_action(workspace, by_alice):
    key, _ = create_key(workspace, "Scout", {"verbs": TRUSTED}, by=by_alice)
    successor, _ = rotate_key(key, ends_at=key.created_at, by=by_alice)
    assert can_activate_memories(successor.scopes, successor.kind)


def test_only_a_key_that_may_write_creates_trusted_bots(key_for, workspace, alice):
    body = {"name": "Scout", "scopes": {"verbs": ["write", "activate"]}}
    reader = key_for(workspace, alice, verbs=["read", "manage"])
    assert reader.post("keys", body).status_code == 422
    for verbs in (["write", "manage"], None):
        writer = key_for(workspace, alice, **({"verbs": verbs} if verbs else {}))
        answer = writer.post("keys", body | {"name": f"Scout {verbs}"})
        assert (answer.status_code, answer.json()["scopes"]["verbs"]) == (201, ["activate", "write"])


def test_the_form_warns_and_is_off_by_default(as_alice, workspace):
    url = f"/w/{workspace.slug}/keys/new/"
    page = as_alice.get(url).content.decode()
    assert "Only for bots that you trust." in page
    assert 'name="can_activate"' in page
    as_alice.post(url, form_data(verbs=["fetch", "render", "read", "write"]))
    assert ApiKey.objects.in_workspace(workspace).get().scopes == {}


def test_the_form_creates_a_trusted_bot_and_the_pages_say_so(as_alice, workspace):
    home = f"/w/{workspace.slug}/keys/"
    answer = as_alice.post(f"{home}new/", form_data(verbs=["read", "write"], can_activate="on"))
    assert answer.status_code == 200, answer.content
    key = ApiKey.objects.in_workspace(workspace).get()
    assert key.scopes["verbs"] == ["activate", "read", "write"]
    for path in (home, f"{home}{key.pk}/"):
        page = as_alice.get(path).content.decode()
        assert "write active memories without approval" in page
        assert "Trusted bot" in page


@pytest.mark.parametrize("values", [{"verbs": ["read"]}, {"kind": "admin", "verbs": ["read", "write"]}])
def test_the_form_refuses_the_action_without_write_and_for_admin_keys(as_alice, workspace, values):
    answer = as_alice.post(f"/w/{workspace.slug}/keys/new/", form_data(can_activate="on", **values))
    assert answer.status_code == 422
    assert not ApiKey.objects.in_workspace(workspace).exists()


@pytest.fixture
def people(by_alice, bob):
    """The requester and the reviewer of a release."""
    return by_alice, Actor.person(bob)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "target"), [("dramatis", None), ("dramatis", "pilot"), ("nova", None)])
def test_a_reviewed_agent_needs_its_release_review(key_for, workspace, people, layout, target):
    stage = make_stage(workspace, layout=layout, release_policy="reviewed")
    release(workspace, stage.prompt, *people)
    before = stage.fetch().text
    bot = key_for(workspace, people[0].user, BOT, verbs=TRUSTED)
    assert bot.post("memories", {"text": FACT, "agent": target}).json()["status"] == "active"
    rebuild_agents(workspace, [stage.agent.pk])
    test_key = create_key(workspace, "Test bot", {"labels": ["latest"]}, by=people[0])[1]
    assert FACT in fetch(test_key, label="latest").text
    assert FACT not in stage.fetch().text
    assert without_time(stage.fetch().text) == without_time(before)
    release(workspace, stage.prompt, *people)
    assert FACT in stage.fetch().text


def release(workspace, prompt, requester, reviewer):
    request = request_release(workspace, [prompt], message="Reviewed", by=requester)
    approve_release(request, by=reviewer)
    run_release(request, by=requester)


def without_time(text):
    return [line for line in text.splitlines() if "time" not in line.lower()]
