"""Lifting a review is an override, and the old policy applies until production has the latest version."""

from secrets import token_hex
from typing import Any

import pytest
from django.test import Client

from personas.actors import Actor
from personas.api_keys.services import create_key
from personas.memories.services import create_memory
from personas.models import Agent, AuditEvent, Channel, Event, Soul
from personas.records.services import edit_record
from personas.roles import Role
from prompts.evidence.erasure.services import erase_record
from prompts.models import AgentPrompt
from prompts.publishing.labels import approval
from tests.api_client import Api
from tests.factories import PASSWORD, join, make_channel, make_user, signed_in
from tests.personas.api.prompts_stage import good, make_deck, problem
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_props,
    shared_workspace,
)

HAS_ELSEWHERE = False
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
AGENT, PILOT = "agents/pilot", {"agent": "pilot", "channel": "deck"}
LABELS = "agents/pilot/channels/deck/labels"
LIFT = {"release_policy": "automatic", "reason": "The reviewer is away."}
FIRST, SECOND = "First text.", "Second text that nobody approved."


class Scene:
    """A reviewed agent whose production has approved text, and keys of two people."""

    def __init__(self, shared: SharedCast) -> None:
        self.workspace, self.alice = shared.workspace, shared.alice
        self.deck = make_deck(self.workspace, release_policy="reviewed")
        rita = make_user("Rita")
        join(self.workspace, rita, Role.REVIEWER)
        self.reviewer = self.make_key(rita)
        self.writer = self.make_key(self.alice, verbs=["fetch", "read", "write"])
        self.overrider = self.make_key(self.alice, verbs=["read", "write", "override"])
        self.approver = self.make_key(self.alice, verbs=["read", "write", "approve", "manage"])
        self.bot = self.make_key(self.alice, "bot")
        self.release()

    def make_key(self, by: Any, kind: str = "admin", **scopes: Any) -> Api:
        name = f"Key {token_hex(4)}"
        _, secret = create_key(self.workspace, name, scopes, by=Actor.person(by), kind=kind)
        return Api(secret, Client(raise_request_exception=False))

    def release(self) -> None:
        number = good(self.writer.post("releases", {"message": "Go", "prompts": [PILOT]}), 201)["number"]
        good(self.reviewer.post(f"releases/{number}:approve"))
        good(self.writer.post(f"releases/{number}:publish"))

    def write(self, text: str) -> None:
        slug = Soul.unscoped.get(pk=self.deck.soul.pk).slug
        good(self.writer.patch(f"souls/{slug}", {"text": text}, "*"))

    def lift(self, **more: Any) -> None:
        good(self.overrider.patch(AGENT, LIFT | more, "*"))

    def try_publish(self, api: Api | None = None) -> Any:
        api = api or self.writer
        release = api.post("releases", {"message": "Go", "prompts": [PILOT]})
        if release.status_code != 201:
            return release
        return api.post(f"releases/{release.json()['number']}:publish")

    @property
    def served(self) -> str:
        return str(self.bot.get("agents/pilot/channels/deck/prompt").json().get("text", ""))

    @property
    def prompt(self) -> AgentPrompt:
        return AgentPrompt.unscoped.select_related("agent", "latest").get(
            agent__slug="pilot", channel__slug="deck", workspace=self.workspace
        )

    @property
    def policy(self) -> str:
        return Agent.unscoped.get(slug="pilot", workspace=self.workspace).release_policy


set_stage = Scene


@pytest.fixture
def scene(props: Scene) -> Scene:
    return props


def refused(answer: Any, status: int, code: str, field: str = "") -> None:
    body = problem(answer, status, code)
    assert not field or [error["pointer"] for error in body["errors"]] == [field], body


# --- who may lift a review -----------------------------------------------------------------------------


def get_reason_of_lift() -> str:
    after = AuditEvent.unscoped.get(verb="lifted review").after
    return str((after or {})["reason"])


def test_a_key_with_write_cannot_lift_the_review_and_publish(scene):
    """Finding N1: policy, edit, release, publish, and policy back, with the key of an owner."""
    refused(scene.writer.patch(AGENT, LIFT, "*"), 422, "invalid", "/release_policy")
    scene.write(SECOND)
    refused(scene.try_publish(), 403, "not_allowed")
    good(scene.writer.patch(AGENT, {"release_policy": "reviewed"}, "*"))
    assert (scene.policy, SECOND in scene.served) == ("reviewed", False)


@pytest.mark.parametrize("verbs", [["read", "write", "approve"], ["read", "write", "manage"]])
def test_no_other_verb_lifts_a_review(scene, verbs):
    api = scene.make_key(scene.alice, verbs=verbs)
    refused(api.patch(AGENT, LIFT, "*"), 422, "invalid", "/release_policy")
    assert scene.policy == "reviewed"


def test_the_verb_of_a_key_does_not_replace_the_role_of_its_member(scene, bob):
    api = scene.make_key(bob, verbs=["read", "write", "override"])
    refused(api.patch(AGENT, LIFT, "*"), 422, "invalid", "/release_policy")


def test_an_override_needs_a_reason_which_is_recorded(scene):
    for reason in ({}, {"reason": " "}):
        body = {"release_policy": "automatic"} | reason
        refused(scene.overrider.patch(AGENT, body, "*"), 422, "invalid", "/reason")
    assert scene.policy == "reviewed"
    scene.lift()
    event = AuditEvent.unscoped.get(verb="lifted review", kind="agent")
    assert event.after == {"release_policy": "automatic", "reason": "The reviewer is away."}
    assert event.before == {"release_policy": "reviewed"}
    assert Event.unscoped.get(type="agent.review_lifted").data == {"agent": "pilot"}
    assert "reason" not in good(scene.writer.get(AGENT))


def test_a_reason_alone_changes_nothing(scene):
    good(scene.overrider.patch(AGENT, {"reason": "None needed."}, "*"))
    assert not AuditEvent.unscoped.filter(verb="lifted review").exists()


def test_replacing_an_agent_without_its_policy_does_not_lift_the_review(scene):
    agent = good(scene.writer.get(AGENT))
    names = ("name", "layout", "channels", "soul")
    body = {name: agent[name] for name in names}
    refused(scene.writer.call("PUT", AGENT, body, If_Match="*"), 422, "invalid", "/release_policy")
    good(scene.writer.call("PUT", AGENT, body | {"release_policy": "reviewed"}, If_Match="*"))


@pytest.mark.parametrize("way", ["api", "page"])
def test_an_older_revision_does_not_lift_the_review(scene, way):
    edit = {"release_policy": "reviewed", "instructions": SECOND}
    good(scene.overrider.patch(AGENT, {"release_policy": "automatic", "reason": "Test."}, "*"))
    number = good(scene.writer.get(AGENT))["revision"]
    good(scene.writer.patch(AGENT, edit, "*"))
    if way == "api":
        good(scene.overrider.call("POST", f"{AGENT}/revisions/{number}:restore", If_Match="*"))
    else:
        page = signed_in(scene.alice)
        page.post(f"/w/{scene.workspace.slug}/agents/pilot/history/{number}/restore/")
    agent = good(scene.writer.get(AGENT))
    assert (agent["release_policy"], agent["instructions"]) == ("reviewed", "")


# --- the old policy applies until production has the latest version ------------------------------------


def test_text_that_waited_for_approval_still_needs_it(scene):
    scene.write(SECOND)
    scene.lift()
    assert scene.policy == "automatic"
    assert good(scene.writer.get("prompts?agent=pilot"))["items"][0]["is_reviewed"] is True
    refused(scene.try_publish(), 403, "not_allowed")
    version = {"version": scene.prompt.latest.number, "expected": 1}
    refused(scene.writer.call("PUT", f"{LABELS}/production", version), 403, "not_allowed")
    refused(scene.approver.post(f"{LABELS}/production:unpin"), 403, "not_allowed")
    assert SECOND not in scene.served


def test_lifting_twice_and_back_opens_no_gap(scene):
    scene.write(SECOND)
    for _ in range(2):
        scene.lift()
        refused(scene.try_publish(), 403, "not_allowed")
        good(scene.writer.patch(AGENT, {"release_policy": "reviewed"}, "*"))
        refused(scene.try_publish(), 403, "not_allowed")
    assert SECOND not in scene.served


def test_text_of_the_same_request_still_needs_approval(scene):
    scene.lift(instructions=SECOND)
    refused(scene.try_publish(), 403, "not_allowed")
    assert SECOND not in scene.served


def test_a_change_after_it_still_needs_approval_while_production_is_behind(scene):
    scene.write(SECOND)
    scene.lift()
    scene.write("Third text.")
    refused(scene.try_publish(), 403, "not_allowed")
    assert "Third text." not in scene.served


def test_a_new_channel_does_not_serve_text_that_waits_for_approval(scene):
    scene.write(SECOND)
    scene.lift()
    make_channel(scene.workspace, "bridge")
    good(scene.writer.patch(AGENT, {"channels": ["deck", "bridge"]}, "*"))
    answer = scene.bot.get("agents/pilot/channels/bridge/prompt")
    assert (answer.status_code, SECOND in answer.content.decode()) == (404, False)


def test_an_approval_ends_the_old_policy(scene):
    scene.write(SECOND)
    scene.lift()
    scene.release()
    assert (SECOND in scene.served, scene.prompt.is_review_kept) == (True, False)
    scene.write("Third text.")
    assert "Third text." in scene.served


def test_an_override_of_the_release_ends_the_old_policy(scene):
    scene.write(SECOND)
    scene.lift()
    number = good(scene.writer.post("releases", {"message": "Go", "prompts": [PILOT]}), 201)["number"]
    good(scene.overrider.post(f"releases/{number}:override", {"reason": "Fire."}))
    assert (SECOND in scene.served, scene.prompt.is_review_kept) == (True, False)


def test_the_new_policy_applies_at_once_if_production_has_the_latest_version(scene):
    scene.lift()
    assert (scene.prompt.is_review_kept, scene.prompt.is_pinned) == (False, True)
    scene.write(SECOND)
    assert SECOND not in scene.served
    assert good(scene.try_publish())["status"] == "released"
    assert SECOND in scene.served


def test_text_that_is_taken_back_ends_the_old_policy(scene):
    before = Soul.unscoped.get(pk=scene.deck.soul.pk).text
    scene.write(SECOND)
    scene.lift()
    assert scene.prompt.is_review_kept
    scene.write(before)
    assert not scene.prompt.is_review_kept


def test_an_erasure_releases_no_text_that_waits_for_approval(scene, by_alice):
    agent = Agent.unscoped.get(slug="pilot", workspace=scene.workspace)
    memory = create_memory(scene.workspace, {"text": "Likes tea.", "agent": agent}, by=by_alice)
    scene.release()
    assert "Likes tea." in scene.served
    scene.write(SECOND)
    scene.lift()
    erase_record(memory, reason="Asked for.", by=by_alice)
    assert (SECOND in scene.served, "Likes tea." in scene.served) == (False, False)


def test_a_roll_back_to_approved_text_stays_possible(scene):
    scene.write(FIRST)
    scene.release()
    scene.write(SECOND)
    scene.lift()
    good(scene.approver.post(f"{LABELS}/production:rollback", {"note": "Back."}))
    assert (FIRST in scene.served, SECOND in scene.served) == (False, False)
    refused(scene.try_publish(), 403, "not_allowed")


# --- new agents ----------------------------------------------------------------------------------------


def test_the_default_for_new_agents_is_a_review_too(scene, alice):
    manager = scene.make_key(alice, verbs=["read", "manage"])
    good(manager.patch("workspace", {"default_release_policy": "reviewed"}, "*"))
    body = {"default_release_policy": "automatic", "reason": "Test."}
    refused(manager.patch("workspace", body, "*"), 422, "invalid", "/default_release_policy")
    new = {"name": "Fresh", "slug": "fresh", "release_policy": "automatic", "reason": "A test."}
    refused(scene.writer.post("agents", new), 422, "invalid", "/release_policy")
    assert (
        good(scene.writer.post("agents", {"name": "Old", "slug": "old"}), 201)["release_policy"] == "reviewed"
    )
    assert good(scene.overrider.post("agents", new), 201)["release_policy"] == "automatic"
    assert get_reason_of_lift() == "A test."
    both = scene.make_key(alice, verbs=["read", "manage", "override"])
    refused(both.patch("workspace", {"default_release_policy": "automatic"}, "*"), 422, "invalid", "/reason")
    good(both.patch("workspace", body, "*"))
    event = AuditEvent.unscoped.filter(verb="changed settings").latest("pk")
    assert event.after == {"default_release_policy": "automatic", "reason": "Test."}
    assert Event.unscoped.filter(type="workspace.review_lifted").count() == 1


# --- other protections ---------------------------------------------------------------------------------


def test_the_key_of_an_owner_needs_manage_to_move_a_protected_label(scene):
    good(scene.approver.post("labels/canary:protect", {"is_protected": True}))
    move = {"version": 1, "expected": None}
    refused(scene.writer.call("PUT", f"{LABELS}/canary", move), 403, "not_allowed")
    wish = {"message": "Go", "label": "canary", "prompts": [PILOT]}
    refused(scene.writer.post("releases", wish), 403, "not_allowed")
    refused(scene.writer.post("labels/canary:protect", {"is_protected": False}), 403, "out_of_scope")
    good(scene.approver.call("PUT", f"{LABELS}/canary", move), 201)


def test_automatic_approval_of_files_needs_the_verb_to_approve_them(scene, alice):
    manager = scene.make_key(alice, verbs=["read", "manage"])
    both = scene.make_key(alice, verbs=["read", "write", "manage"])
    new = {"name": "Pushed", "kind": "pushed"}
    refused(manager.post("sources", new | {"approval": "automatic"}), 403, "out_of_scope")
    source = good(manager.post("sources", new), 201)
    at, automatic = f"sources/{source['slug']}", {"approval": "automatic"}
    refused(manager.patch(at, automatic, "*"), 403, "out_of_scope")
    assert good(manager.get(at))["approval"] == "manual"
    good(both.patch(at, automatic, "*"))
    good(manager.patch(at, {"approval": "manual"}, "*"))
    refused(manager.call("POST", f"{at}/revisions/2:restore", If_Match="*"), 403, "out_of_scope")
    assert good(manager.get(at))["approval"] == "manual"
    good(manager.post("discovered-skills:trust", {"is_required": True}))
    refused(manager.post("discovered-skills:trust", {"is_required": False}), 403, "out_of_scope")
    good(both.post("discovered-skills:trust", {"is_required": False}))


# --- pages ---------------------------------------------------------------------------------------------


def build_form(agent: Agent, **values: Any) -> dict[str, Any]:
    channels = Channel.unscoped.filter(agent_links__agent=agent).values_list("pk", flat=True)
    form = {"name": agent.name, "layout": agent.layout, "soul": agent.soul_id, "channels": list(channels)}
    return form | {"release_policy": "automatic", "revision": agent.revision} | values


def test_the_page_requires_a_reason_and_a_recent_sign_in(scene, client):
    agent = Agent.unscoped.get(slug="pilot", workspace=scene.workspace)
    path = f"/w/{scene.workspace.slug}/agents/pilot/edit/"
    page = signed_in(scene.alice)
    assert "Reason for lifting the review" in page.get(path).content.decode()
    refused = page.post(path, build_form(agent))
    assert (refused.status_code, "Enter the reason" in refused.content.decode()) == (422, True)
    scene.alice.set_password(PASSWORD)
    scene.alice.save()
    client.force_login(scene.alice)
    answer = client.post(path, build_form(agent, reason="The reviewer is away."))
    assert (answer.status_code, "/reauthenticate/" in answer["Location"]) == (302, True)
    assert scene.policy == "reviewed"
    confirmed = client.post(answer["Location"], {"password": PASSWORD}, follow=True)
    assert (confirmed.status_code, scene.policy) == (200, "automatic")
    assert get_reason_of_lift() == "The reviewer is away."


def test_an_editor_cannot_lift_the_review_on_the_page(scene, bob):
    agent = Agent.unscoped.get(slug="pilot", workspace=scene.workspace)
    page = signed_in(bob)
    answer = page.post(f"/w/{scene.workspace.slug}/agents/pilot/edit/", build_form(agent, reason="Please."))
    assert (answer.status_code, scene.policy) == (422, "reviewed")
    assert "Only an owner or an admin can lift a review." in answer.content.decode()


def test_the_settings_page_requires_a_reason_and_a_recent_sign_in(scene, client):
    scene.workspace.default_release_policy = "reviewed"
    scene.workspace.save()
    path, form = f"/w/{scene.workspace.slug}/settings/", {"name": "Harbour"}
    form |= {"default_release_policy": "automatic"}
    page = signed_in(scene.alice)
    refused = page.post(path, form)
    assert (refused.status_code, "Enter the reason" in refused.content.decode()) == (422, True)
    scene.alice.set_password(PASSWORD)
    scene.alice.save()
    client.force_login(scene.alice)
    answer = client.post(path, form | {"reason": "Small team."})
    assert "/reauthenticate/" in answer["Location"]
    client.post(answer["Location"], {"password": PASSWORD}, follow=True)
    scene.workspace.refresh_from_db()
    assert scene.workspace.default_release_policy == "automatic"


def test_an_operator_cannot_lift_a_review(scene):
    agent = Agent.unscoped.get(slug="pilot", workspace=scene.workspace)
    operator = Actor.operator(make_user("Otto"))
    with pytest.raises(Exception, match="Only an owner or an admin"):
        edit_record(agent, LIFT, expected=agent.revision, by=operator)


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.planted
def test_the_role_instead_of_the_verb_is_found(scene, monkeypatch):
    monkeypatch.setattr("personas.records.review_policy.is_permitted", lambda *args: True)
    assert scene.writer.patch(AGENT, LIFT, "*").status_code == 200
    assert scene.policy == "automatic"


@pytest.mark.planted
def test_a_review_that_ends_at_once_is_found(scene, monkeypatch):
    monkeypatch.setattr("prompts.receivers.keep_review", lambda *args: None)
    scene.write(SECOND)
    scene.lift()
    assert good(scene.try_publish())["status"] == "released"
    assert SECOND in scene.served


@pytest.mark.planted
def test_a_check_of_the_stored_policy_alone_is_found(scene, monkeypatch):
    stored = property(lambda prompt: prompt.agent.release_policy == "reviewed")
    monkeypatch.setattr(AgentPrompt, "is_reviewed", stored)
    scene.write(SECOND)
    scene.lift()
    # The check of all moves refuses it …
    refused(scene.try_publish(), 403, "not_allowed")
    # … and with the same fault there, the text is served.
    monkeypatch.setattr(approval, "is_approval_required", lambda move, protected: move.prompt.is_reviewed)
    good(scene.try_publish())
    assert SECOND in scene.served
