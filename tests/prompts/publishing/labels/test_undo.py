"""Undo of label moves and roll-backs by the button of their message, and the rebuild-all page."""

import pytest

from personas.records.services import edit_record
from prompts.models import PRODUCTION, AgentPrompt, BuildCause, PromptLabel
from prompts.publishing.builds.services import rebuild_agents
from tests.factories import BY, make_agent, make_channel, make_soul
from tests.personas.ui.test_toasts import find_undo, post_and_follow, press_undo
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def set_stage(shared: SharedCast) -> AgentPrompt:
    """Two versions, production at the second."""
    workspace = shared.workspace
    soul = make_soul(workspace, text="Be brave.")
    pilot = make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
    rebuild_agents(workspace, [pilot.pk])
    edit_record(soul, {"text": "Be calm."}, expected=1, by=BY)
    rebuild_agents(workspace, [pilot.pk])
    return AgentPrompt.objects.in_workspace(workspace).get(agent=pilot)


@pytest.fixture
def prompt(props: AgentPrompt) -> AgentPrompt:
    return props


def at(prompt, label):
    """Return the number of the version that a label points to."""
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    return rows.values_list("version__number", flat=True).first()


def test_a_label_goes_back_to_where_it_was_and_to_nowhere(as_bob, workspace, prompt):
    base = f"/w/{workspace.slug}/prompts/{prompt.pk}/versions"
    page = post_and_follow(as_bob, f"{base}/1/label/", label="canary")
    first = PromptLabel.objects.in_workspace(workspace).get(name="canary").version_id
    press_undo(as_bob, page)
    assert at(prompt, "canary") is None
    post_and_follow(as_bob, f"{base}/1/label/", label="canary")
    page = post_and_follow(as_bob, f"{base}/2/label/", label="canary", seen=f"canary:{first}")
    assert at(prompt, "canary") == 2
    press_undo(as_bob, page)
    assert at(prompt, "canary") == 1
    page = post_and_follow(as_bob, f"/w/{workspace.slug}/prompts/{prompt.pk}/labels/canary/remove/")
    assert at(prompt, "canary") is None
    press_undo(as_bob, page)
    assert at(prompt, "canary") == 1


def test_a_roll_back_is_undone_so_that_production_follows_again(as_alice, workspace, prompt):
    page = post_and_follow(as_alice, f"/w/{workspace.slug}/prompts/{prompt.pk}/roll-back/", note="Too calm.")
    assert at(prompt, PRODUCTION) == 1
    press_undo(as_alice, page)
    assert at(prompt, PRODUCTION) == 2
    prompt.refresh_from_db()
    assert not prompt.is_pinned


def test_a_second_roll_back_is_undone_to_the_first(as_alice, workspace, prompt):
    address = f"/w/{workspace.slug}/prompts/{prompt.pk}/roll-back/"
    post_and_follow(as_alice, address, note="Too calm.")
    page = post_and_follow(as_alice, address, note="Better.", to="2")
    assert at(prompt, PRODUCTION) == 2
    press_undo(as_alice, page)
    assert at(prompt, PRODUCTION) == 1
    assert find_undo(post_and_follow(as_alice, address, note="No.", to="1")) is None


def test_everything_is_rebuilt_after_confirmation(as_bob, workspace, prompt):
    address = f"/w/{workspace.slug}/rebuilding/"
    assert "Rebuild one prompt" in as_bob.get(address).content.decode()
    assert not BuildCause.objects.in_workspace(workspace).exists()
    assert "1 prompt is being rebuilt." in post_and_follow(as_bob, address)
    assert BuildCause.objects.in_workspace(workspace).count() == 1
