"""Approving a file, trusting skills and moving a label show the review first, and save nothing before."""

# ruff: noqa: F811  # fixtures are imported and requested by name

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.urls import resolve

from personas.models import Agent, Workspace
from personas.records.services import edit_record
from personas.ui.responses import REVIEWED_FIELD
from personas.ui.review import Automatic
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.publishing.labels.services import move_label
from skills.agent_context.services import choose_context
from skills.models import Source
from tests.factories import BY, make_agent, make_channel, make_source, refreshed
from tests.prompts.publishing.review.test_review_step import editor, get_production, pilot, soul  # noqa: F401  # fixtures
from tests.skills.files.file_samples import approve_file_at, file_at, write, write_skill

pytestmark = pytest.mark.django_db(transaction=True)

OLD, NEW = "Answer in short sentences.", "Answer in riddles."
SKILL_PATH = ".agents/skills/tea/SKILL.md"


class ReviewedAction(NamedTuple):
    """A page action: its request, the button of its review, and what is compared before and after."""

    path: str
    data: dict[str, Any]
    button: str
    get_state: Callable[[], Any]


@pytest.fixture
def source(workspace: Workspace, tmp_path: Path, settings: Any) -> Source:
    """A source whose changes need approval, with an approved file and a new skill, used by one prompt."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    folder = tmp_path / "files"
    write(folder / "AGENTS.md", OLD)
    source = make_source(workspace, folder, approval="manual")
    refreshed(source)
    approve_file_at(source, "AGENTS.md")
    agent = make_agent(workspace, "clerk", channels=[make_channel(workspace, "desk")])
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    write(folder / "AGENTS.md", NEW)
    write_skill(folder, "tea")
    refreshed(source)
    return source


def get_text(workspace: Workspace) -> str:
    return get_production(Agent.objects.in_workspace(workspace).get(slug="clerk"), "desk")


def prepare_file(workspace: Workspace, source: Source) -> ReviewedAction:
    file = file_at(source, "AGENTS.md")
    assert OLD in get_text(workspace)
    path = f"/w/{workspace.slug}/files/{file.pk}/approve/"
    data = {"digest": file.latest.digest}
    return ReviewedAction(path, data, "Approve and deploy (1 prompt)", lambda: get_text(workspace))


def prepare_inbox(workspace: Workspace, source: Source) -> ReviewedAction:
    file = file_at(source, "AGENTS.md")
    data = {"pick": [f"{file.pk}:{file.latest.digest}"]}
    path = f"/w/{workspace.slug}/inbox/approve/"
    return ReviewedAction(path, data, "Approve and deploy (1 prompt)", lambda: get_text(workspace))


def prepare_skill(workspace: Workspace, source: Source) -> ReviewedAction:
    file = file_at(source, SKILL_PATH)
    assert "tea" not in get_text(workspace)
    path = f"/w/{workspace.slug}/files/{file.pk}/approve/"
    data = {"digest": file.latest.digest}
    return ReviewedAction(path, data, "Approve and deploy (1 prompt)", lambda: get_text(workspace))


def prepare_trust_policy(workspace: Workspace, source: Source) -> ReviewedAction:
    """Stop requiring trust: the skill that nobody has trusted would be used."""
    edit_record(source, {"approval": "automatic"}, expected=source.revision, by=BY)
    assert Workspace.objects.get(pk=workspace.pk).skills_need_trust
    path = f"/w/{workspace.slug}/skills/trust/policy/"

    def get_state() -> Any:
        return Workspace.objects.get(pk=workspace.pk).skills_need_trust, get_text(workspace)

    return ReviewedAction(path, {"needed": "0"}, "Save and deploy (1 prompt)", get_state)


FILE_ACTIONS = [prepare_file, prepare_inbox, prepare_skill, prepare_trust_policy]


def prepare_label(pilot: Agent) -> ReviewedAction:
    prompt = AgentPrompt.unscoped.get(agent=pilot, channel__slug="deck")
    first, second = PromptVersion.unscoped.filter(prompt=prompt).order_by("number")
    move_label(prompt, "canary", first, expected=None, by=BY)
    path = f"/w/{pilot.workspace.slug}/prompts/{prompt.pk}/versions/{second.number}/label/"
    data = {"label": "canary", "seen": f"canary:{first.pk}"}

    def get_state() -> Any:
        return PromptLabel.unscoped.get(prompt=prompt, name="canary").version.number

    assert get_state() == 1
    return ReviewedAction(path, data, "Move label (1 prompt)", get_state)


def check_review(client: Client, action: ReviewedAction) -> None:
    """Expect the review as a page and as a dialog, no change before its button, and a change after it."""
    before = action.get_state()
    for headers in ({}, {"Dramatis-Review": "ask"}):
        review = client.post(action.path, action.data, headers=headers)
        assert review.headers.get("Dramatis-Review") == "required", "The review was not shown."
        assert action.button in review.content.decode()
        assert action.get_state() == before
    confirmed = client.post(action.path, {**action.data, REVIEWED_FIELD: review.context["token"]})
    assert confirmed.status_code == 302
    assert action.get_state() != before


@pytest.mark.parametrize("prepare", FILE_ACTIONS)
def test_a_file_or_skill_is_used_only_after_its_review(editor, workspace, source, prepare):
    check_review(editor, prepare(workspace, source))


def test_a_label_moves_only_after_its_review(editor, pilot):
    action = prepare_label(pilot)
    page = editor.post(action.path, action.data).content.decode()
    assert "Bots that request another label (canary) get the new version" in page
    assert "calm" in page
    assert "to production immediately" not in page
    check_review(editor, action)


def test_a_new_label_is_set_at_once(editor, pilot):
    """No bot requests it yet."""
    prompt = AgentPrompt.unscoped.get(agent=pilot, channel__slug="deck")
    path = f"/w/{pilot.workspace.slug}/prompts/{prompt.pk}/versions/1/label/"
    assert editor.post(path, {"label": "canary"}).status_code == 302
    assert PromptLabel.unscoped.get(prompt=prompt, name="canary").version.number == 1


@pytest.mark.planted
@pytest.mark.parametrize("prepare", [*FILE_ACTIONS, None])
def test_a_planted_bypass_is_found(editor, source, pilot, prepare, monkeypatch):
    action = prepare(source.workspace, source) if prepare else prepare_label(pilot)
    monkeypatch.setattr(resolve(action.path).func, "review", Automatic("planted"))
    with pytest.raises(AssertionError, match="The review was not shown"):
        check_review(editor, action)


def test_the_forms_of_these_actions_ask_for_the_review(editor, workspace, source, pilot):
    """Without the attribute, the review would be a page of its own instead of a dialog."""
    prompt = AgentPrompt.unscoped.get(agent=pilot, channel__slug="deck")
    file = file_at(source, "AGENTS.md")
    for page, form in (
        (f"files/{file.pk}/", f'/files/{file.pk}/approve/" data-review'),
        ("inbox/", '/inbox/approve/" data-review'),
        ("skills/", '/skills/trust/policy/" data-review'),
        (f"prompts/{prompt.pk}/versions/1/", '/versions/1/label/" data-review'),
    ):
        assert form in editor.get(f"/w/{workspace.slug}/{page}").content.decode(), page
