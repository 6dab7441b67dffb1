"""No page action moves production of a reviewed agent to a version that nobody approved.

Each action is sent and its review is confirmed. A planted bypass of its own check is refused by the check of
all label moves; without that one too, the test fails.
"""

# ruff: noqa: F811  # fixtures are imported and requested by name

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from django.test import Client

from personas.actors import Actor
from personas.models import Agent, MemoryStatus, Soul, User
from personas.records.services import edit_record
from personas.ui.responses import REVIEWED_FIELD
from prompts.errors import NotAllowed
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel
from prompts.publishing.releases.services import request_release
from tests.factories import BY, make_memory
from tests.prompts.publishing.review.test_review_step import (  # noqa: F401  # fixtures
    editor,
    get_production,
    pilot,
    soul,
    soul_form,
)

pytestmark = pytest.mark.django_db(transaction=True)

Request = tuple[str, dict[str, Any]]
# Checks that take every agent for one with automatic releases.


class Guarded(NamedTuple):
    """A reviewed agent with a version that waits for approval, and the people around it."""

    agent: Agent
    soul: Soul
    prompt: AgentPrompt
    alice: User
    bob: User

    @property
    def url(self) -> str:
        return f"/w/{self.agent.workspace.slug}"


@pytest.fixture
def guarded(pilot: Agent, soul: Soul, alice: User, bob: User) -> Guarded:
    agent = edit_record(pilot, {"release_policy": "reviewed"}, expected=pilot.revision, by=BY)
    soul.refresh_from_db()
    edit_record(soul, {"text": "Be wild."}, expected=soul.revision, by=Actor.person(alice))
    prompts = AgentPrompt.unscoped.select_related("latest", "agent", "channel", "workspace")
    return Guarded(agent, soul, prompts.get(agent=agent, channel__slug="deck"), alice, bob)


# --- actions ---------------------------------------------------------------------------------------------


def save_soul(guarded: Guarded) -> list[Request]:
    return [(f"{guarded.url}/souls/{guarded.soul.slug}/edit/", soul_form(guarded.soul, "Be loud."))]


def restore_soul(guarded: Guarded) -> list[Request]:
    guarded.soul.refresh_from_db()
    path = f"{guarded.url}/souls/{guarded.soul.slug}/history/1/restore/"
    return [(path, {"expected": guarded.soul.revision})]


def approve_memory(guarded: Guarded) -> list[Request]:
    workspace = guarded.agent.workspace
    memory = make_memory(workspace, text="The reef moved.", status=MemoryStatus.PROPOSED, agent=guarded.agent)
    return [(f"{guarded.url}/memories/{memory.pk}/approve/", {})]


def set_production(guarded: Guarded) -> list[Request]:
    prompt = guarded.prompt
    label = PromptLabel.unscoped.get(prompt=prompt, name=PRODUCTION)
    data = {"label": PRODUCTION, "seen": f"{PRODUCTION}:{label.version_id}"}
    return [(f"{guarded.url}/prompts/{prompt.pk}/versions/{prompt.last_number}/label/", data)]


def roll_forward(guarded: Guarded) -> list[Request]:
    data = {"to": guarded.prompt.last_number, "note": "Forward."}
    return [(f"{guarded.url}/prompts/{guarded.prompt.pk}/roll-back/", data)]


def resume_automatic_releases(guarded: Guarded) -> list[Request]:
    AgentPrompt.unscoped.filter(pk=guarded.prompt.pk).update(is_pinned=True)
    return [(f"{guarded.url}/prompts/{guarded.prompt.pk}/unpin/", {})]


def publish_requested_release(guarded: Guarded) -> list[Request]:
    by = Actor.person(guarded.alice)
    release = request_release(guarded.agent.workspace, [guarded.prompt], message="Go", by=by)
    return [(f"{guarded.url}/releases/{release.number}/publish/", {})]


def approve_own_change(guarded: Guarded) -> list[Request]:
    """Alice wrote the change, and Bob requested its release."""
    by = Actor.person(guarded.bob)
    release = request_release(guarded.agent.workspace, [guarded.prompt], message="Go", by=by)
    return [(f"{guarded.url}/releases/{release.number}/{verb}/", {}) for verb in ("approve", "publish")]


Prepare = Callable[[Guarded], list[Request]]
# The own check of each action, with what a faulty product would have in its place.
BYPASSES: dict[Prepare, dict[str, Any]] = {
    save_soul: {"prompts.models.AgentPrompt.is_reviewed": False},
    restore_soul: {"prompts.models.AgentPrompt.is_reviewed": False},
    approve_memory: {"prompts.models.AgentPrompt.is_reviewed": False},
    set_production: {
        "prompts.publishing.labels.forms.LabelForm.clean_label": lambda form: form.cleaned_data["label"],
        "prompts.models.AgentPrompt.is_reviewed": False,
    },
    roll_forward: {"prompts.publishing.labels.services.find_rollback_target": lambda prompt, label, to: to},
    resume_automatic_releases: {"prompts.models.AgentPrompt.is_reviewed": False},
    publish_requested_release: {
        "prompts.publishing.releases.services.list_agents_to_review": lambda release: []
    },
}
SELF_APPROVAL = {"prompts.publishing.releases.services.describe_own_part": lambda release, items, user: ""}


def check_production_waits(client: Client, guarded: Guarded, prepare: Prepare) -> None:
    """Send the action, confirm its review, and expect the same text in production."""
    requests, before = prepare(guarded), get_production(guarded.agent)
    for path, data in requests:
        with suppress(NotAllowed):
            answer = client.post(path, data)
            if answer.headers.get("Dramatis-Review") == "required":
                client.post(path, {**data, REVIEWED_FIELD: answer.context["token"]})
    assert get_production(guarded.agent) == before, "Production changed without an approval."


def plant(monkeypatch: pytest.MonkeyPatch, bypass: dict[str, Any]) -> None:
    for name, fault in bypass.items():
        monkeypatch.setattr(name, fault)


# --- tests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prepare", [*BYPASSES, approve_own_change])
def test_production_waits_for_an_approval(editor, guarded, prepare):
    assert "Be calm." in get_production(guarded.agent)
    check_production_waits(editor, guarded, prepare)


@pytest.mark.planted
@pytest.mark.parametrize("prepare", BYPASSES)
def test_a_planted_bypass_is_refused_by_the_check_of_all_moves(editor, guarded, prepare, monkeypatch):
    plant(monkeypatch, BYPASSES[prepare])
    check_production_waits(editor, guarded, prepare)


@pytest.mark.planted
@pytest.mark.parametrize("prepare", [*BYPASSES, approve_own_change])
def test_a_planted_bypass_of_both_checks_is_found(editor, guarded, prepare, monkeypatch):
    """An approval by the author of the change has no second check: the release is approved."""
    plant(monkeypatch, BYPASSES.get(prepare, SELF_APPROVAL))
    if prepare in BYPASSES:
        monkeypatch.setattr("prompts.publishing.labels.moves.check_moves", lambda *args: None)
    with pytest.raises(AssertionError, match=r"Production changed without an approval"):
        check_production_waits(editor, guarded, prepare)
