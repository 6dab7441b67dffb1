"""Keys that are limited to some agents, channels or labels: what they may read and write."""

import pytest

from personas.api_keys.format import BOT
from personas.api_keys.services import rotate_key
from personas.models import ApiKey, Channel, Memory, Responsibility
from skills.models import PushedFile
from tests.api_client import Api
from tests.factories import make_agent, make_channel, make_memory, make_responsibility, make_tool
from tests.personas.api.skills_stage import make_pushed
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def agents(workspace):
    channels = [make_channel(workspace, slug) for slug in ("deck", "bridge")]
    return [make_agent(workspace, slug, channels=channels) for slug in ("pilot", "cook")]


def refused(answer):
    """Return the reason of a 403, which names the limit."""
    assert answer.status_code == 403, answer.content
    return answer.json()["detail"]


# --- channels and labels -------------------------------------------------------------------------------


def test_a_key_for_some_channels_reads_and_writes_only_these(key_for, workspace, alice, agents):
    key = key_for(workspace, alice, channels=["deck"])
    assert [row["slug"] for row in key.get("channels").json()["items"]] == ["deck"]
    assert key.get("channels/bridge").status_code == 404
    assert key.patch("channels/bridge", {"formatting": "Loud."}, "*").status_code == 404
    assert key.patch("channels/deck", {"formatting": "Loud."}, "*").status_code == 200
    assert key.get("agents/pilot").json()["channels"] == ["deck"]
    assert "channels" in refused(key.post("channels", {"slug": "mast", "name": "Mast"}))
    assert Channel.objects.in_workspace(workspace).get(slug="bridge").formatting == ""


@pytest.mark.parametrize("limit", [{"channels": ["deck"]}, {"labels": ["staging"]}])
def test_a_key_for_some_channels_or_labels_writes_nothing_that_all_prompts_share(
    limit, key_for, workspace, alice, agents
):
    key, name = key_for(workspace, alice, **limit), next(iter(limit))
    writes = [
        ("POST", "memories", {"text": "Likes tea.", "agent": "pilot"}),
        ("POST", "souls", {"name": "Calm", "text": "Breathe."}),
        ("PATCH", "agents/pilot", {"instructions": "Steer."}),
        ("PUT", "prompt-settings/agents/pilot", {"token_budget": 900}),
        ("POST", "agents/pilot/prompts:rebuild", None),
        ("POST", "tasks", {"title": "Scrub", "agent": "pilot"}),
    ]
    for method, path, body in writes:
        assert f"limited to specific {name}" in refused(key.call(method, path, body, If_Match="*")), path
    assert not Memory.objects.in_workspace(workspace).exists()


def test_limits_apply_together(key_for, workspace, alice, agents):
    key = key_for(workspace, alice, agents=["pilot"], channels=["deck"])
    assert "channels" in refused(key.patch("agents/pilot", {"instructions": "Steer."}, "*"))
    assert "agents" in refused(key.patch("channels/deck", {"formatting": "Loud."}, "*"))
    settings = "prompt-settings/agents/{}/channels/{}"
    for agent, channel, status in (("pilot", "deck", 200), ("pilot", "bridge", 404), ("cook", "deck", 404)):
        path = settings.format(agent, channel)
        assert key.call("PUT", path, {"token_budget": 900}, If_Match="*").status_code == status


def test_a_bot_on_one_channel_proposes_memories(key_for, workspace, alice, agents):
    bot = key_for(workspace, alice, BOT, channels=["deck"], labels=["staging"])
    answer = bot.post("memories", {"text": "Likes tea.", "agent": "pilot"})
    assert (answer.status_code, answer.json()["status"]) == (201, "proposed")
    trusted = key_for(workspace, alice, BOT, channels=["deck"], verbs=["write", "activate"])
    assert "channels" in refused(trusted.post("memories", {"text": "Likes rum.", "agent": "pilot"}))


# --- agents --------------------------------------------------------------------------------------------


def test_a_change_that_reaches_other_agents_is_refused(key_for, workspace, alice, agents):
    key = key_for(workspace, alice, agents=["pilot"])
    assert key.patch("agents/pilot", {"instructions": "Steer."}, "*").status_code == 200
    make_agent(workspace, "mate", parent=agents[0])
    assert "affect prompts of other agents" in refused(
        key.patch("agents/pilot", {"working_directory": "a"}, "*")
    )


def test_a_change_of_an_agent_that_is_a_tool_of_another_is_refused(key_for, workspace, alice, agents):
    tool = make_tool(workspace, "ask_pilot", agent=agents[0])
    make_agent(workspace, "mate", tools=[tool])
    key = key_for(workspace, alice, agents=["pilot"])
    assert "affect prompts of other agents" in refused(
        key.patch("agents/pilot", {"description": "Helm."}, "*")
    )


def test_a_bot_removes_responsibilities_only_of_its_agents(key_for, workspace, alice, agents):
    for agent in agents:
        make_responsibility(agent, "Coffee")
    body = {"title": "Coffee"}
    everywhere = key_for(workspace, alice, BOT)
    path = "agents/{}/responsibilities:remove"
    for title in ("Coffee", "No such title"):
        refusal = refused(everywhere.post(path.format("pilot"), {"title": title}))
        assert "limited to specific agents" in refusal
    own = key_for(workspace, alice, BOT, agents=["pilot"])
    assert own.post(path.format("pilot"), body).status_code == 204
    assert own.post(path.format("cook"), body).status_code == 404
    rows = Responsibility.objects.in_workspace(workspace).filter(archived_at=None)
    assert [row.agent.slug for row in rows] == ["cook"]


# --- the workspace -------------------------------------------------------------------------------------


def test_limited_keys_list_no_members(key_for, workspace, alice, agents):
    key = key_for(workspace, alice, agents=["pilot"])
    assert "agents" in refused(key.get("members"))


def test_only_a_key_that_manages_keys_sees_their_scopes_in_the_audit_log(key_for, workspace, alice):
    reader = key_for(workspace, alice, verbs=["read"])
    manager = key_for(workspace, alice, verbs=["read", "manage"])
    hidden = reader.get("audit?kind=key").json()["items"]
    assert [row["after"] for row in hidden] == [None, None]
    assert all(row["after"]["scopes"] for row in manager.get("audit?kind=key").json()["items"])


def test_an_overlap_of_more_than_seven_days_is_a_field_error(admin: Api, workspace, by_alice):
    made = admin.post("keys", {"name": "Desk"}).json()
    answer = admin.post(f"keys/{made['id']}:rotate", {"overlap_hours": 169})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/overlap_hours")
    assert admin.post(f"keys/{made['id']}:rotate", {"overlap_hours": 168}).status_code == 201


def test_a_release_without_approval_needs_its_own_verb(key_for, workspace, alice):
    for scopes in ({}, {"verbs": ["manage"]}):
        answer = key_for(workspace, alice, **scopes).post("releases/1:override", {"reason": "Fire."})
        assert answer.status_code == 403
    key = key_for(workspace, alice, verbs=["override"])
    assert key.post("releases/1:override", {"reason": "Fire."}).status_code == 404
    body = {"name": "Wide", "kind": "admin", "scopes": {"verbs": ["override"]}}
    assert key_for(workspace, alice).post("keys", body).status_code == 422


# --- pushed files --------------------------------------------------------------------------------------


def paths(source):
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return sorted(rows.values_list("path", flat=True))


@pytest.mark.slow
def test_a_complete_push_removes_only_files_of_its_own_key(key_for, workspace, alice, by_alice):
    source = make_pushed(workspace)
    one, other = key_for(workspace, alice, BOT), key_for(workspace, alice, BOT)
    push = f"sources/{source.slug}/files:push"
    for bot, name in ((one, "AGENTS.md"), (one, "a/AGENTS.md"), (other, "b/AGENTS.md")):
        assert bot.post(push, {"files": [{"path": name, "text": "Hi."}]}).status_code == 202
    # To overwrite a file does not make it one's own.
    assert other.post(push, {"files": [{"path": "AGENTS.md", "text": "Ho."}]}).status_code == 202
    body = {"files": [{"path": "c/AGENTS.md", "text": "Hi."}], "is_complete": True}
    assert other.post(push, body).status_code == 202
    assert paths(source) == ["AGENTS.md", "a/AGENTS.md", "c/AGENTS.md"]
    assert "another key" in refused(other.delete(f"sources/{source.slug}/files/AGENTS.md", "*"))
    first = ApiKey.objects.in_workspace(workspace).get(name="Key 1")
    _, secret = rotate_key(first, ends_at=first.created_at, by=by_alice, name="Rotated")
    successor = Api(secret, one.client)
    assert successor.delete(f"sources/{source.slug}/files/AGENTS.md", "*").status_code == 202
    manager = key_for(workspace, alice)
    assert manager.post(push, body).status_code == 202
    assert paths(source) == ["c/AGENTS.md"]


def test_new_pushed_sources_have_manual_approval(admin: Api):
    made = admin.post("sources", {"name": "House", "kind": "pushed"}).json()
    assert made["approval"] == "manual"
    chosen = admin.post("sources", {"name": "Trusted", "kind": "pushed", "approval": "automatic"}).json()
    assert chosen["approval"] == "automatic"
    put = admin.call("PUT", f"sources/{made['slug']}", {"name": "House"}, If_Match="*")
    assert put.json()["approval"] == "manual"


def test_memories_of_other_agents_stay_outside(key_for, workspace, alice, agents):
    make_memory(workspace, text="Secret of the cook.", agent=agents[1])
    key = key_for(workspace, alice, agents=["pilot"], labels=["staging"])
    assert "Secret" not in key.get("memories").content.decode()
