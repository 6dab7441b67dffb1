"""Invalid input to labels, releases and rebuilds: a clear error, and nothing changed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from personas.actors import Actor
from personas.errors import DomainError
from personas.models import Agent
from personas.records.services import archive_record, edit_record
from prompts.errors import ForeignVersion, NotAllowed, UnknownLabel
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    BuildCause,
    LabelMove,
    PromptLabel,
    PromptVersion,
    Release,
    ReleaseStatus,
)
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label, remove_label, roll_back
from prompts.publishing.releases.services import approve_release, request_release, run_release
from tests.factories import BY, make_agent, make_channel, make_soul
from tests.prompts.serving.serving_stage import make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]


class Ship(NamedTuple):
    """Two prompts with one soul, at two versions or more each."""

    soul: Any
    quick: Any
    careful: Any


def set_stage(shared: SharedCast) -> Ship:
    workspace = shared.workspace
    soul = make_soul(workspace, text="Be brave.")
    return Ship(
        soul,
        make_prompt(workspace, "quick", soul, "automatic"),
        make_prompt(workspace, "careful", soul, "reviewed"),
    )


@pytest.fixture
def soul(props: Ship) -> Any:
    return props.soul


@pytest.fixture
def quick(props: Ship) -> Any:
    """An automatic agent's prompt with three versions."""
    return props.quick


@pytest.fixture
def careful(props: Ship) -> Any:
    """A reviewed agent's prompt with two versions."""
    return props.careful


def make_prompt(workspace: Any, slug: str, soul: Any, policy: str) -> Any:
    channel = make_channel(workspace, f"{slug}-deck")
    agent = make_agent(workspace, slug, soul=soul, channels=[channel], release_policy=policy)
    reword(soul)
    return prompt_of(agent)


def prompt_of(agent: Agent) -> Any:
    rows = AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest", "agent", "channel")
    return rows.get(agent=agent)


def reword(soul: Any) -> None:
    soul.refresh_from_db()
    edit_record(soul, {"text": f"{soul.text} And wise."}, expected=soul.revision, by=BY)


def numbered(prompt: AgentPrompt, number: int) -> Any:
    return PromptVersion.unscoped.get(prompt=prompt, number=number)


def stored_state() -> list[Any]:
    """Return all versions, labels, moves, releases and prompt heads, for comparison."""
    kinds = (PromptVersion, PromptLabel, LabelMove, Release)
    heads = ("pk", "latest", "last_hash", "last_move_hash", "is_pinned")
    rows = [list(kind.unscoped.order_by("pk").values()) for kind in kinds]
    return [*rows, list(AgentPrompt.unscoped.order_by("pk").values(*heads))]


def refused(error: type[DomainError], message: str, action: Callable[[], object]) -> None:
    before = stored_state()
    with pytest.raises(error, match=message):
        action()
    assert stored_state() == before


# --- a label that is not there, a version that is another's --------------------------------------------


def test_an_unknown_label_is_neither_removed_nor_rolled_back(quick, by_alice):
    refused(
        UnknownLabel,
        "This prompt has no label “canary”",
        lambda: remove_label(quick, "canary", by=by_alice),
    )
    refused(
        UnknownLabel,
        "has no label “canary”",
        lambda: roll_back([quick], by=by_alice, note="Back.", label="canary"),
    )


def test_one_prompt_without_the_label_stops_the_roll_back_of_all(quick, careful, by_alice):
    refused(
        UnknownLabel,
        "has no label “production”",
        lambda: roll_back([quick, careful], by=by_alice, note="Back."),
    )


def test_another_agents_version_is_rejected_by_every_action(quick, careful, by_alice):
    foreign = numbered(careful, 1)
    message = "belongs to another prompt"
    refused(ForeignVersion, message, lambda: move_label(quick, "canary", foreign, expected=None, by=by_alice))
    refused(ForeignVersion, message, lambda: roll_back([quick], by=by_alice, note="Back.", to=foreign))


def test_another_workspaces_version_is_refused_too(quick, elsewhere, by_alice):
    agent = make_agent(elsewhere, "spy", channels=[make_channel(elsewhere, "attic")])
    foreign = numbered(prompt_of(agent), 1)
    message = "belongs to another prompt"
    refused(ForeignVersion, message, lambda: move_label(quick, "canary", foreign, expected=None, by=by_alice))


def test_a_number_that_only_another_agents_prompt_has_is_not_found(as_alice, quick, careful, soul):
    reword(soul)
    archive_record(quick.agent, by=BY)
    for _ in range(2):
        reword(soul)
    before, number = stored_state(), prompt_of(careful.agent).last_number
    assert number > prompt_of(quick.agent).last_number
    base = f"/w/harbour/prompts/{quick.pk}"
    assert as_alice.post(f"{base}/versions/{number}/label/", {"label": "canary"}).status_code == 404
    assert as_alice.post(f"{base}/roll-back/", {"note": "Back.", "to": str(number)}).status_code == 404
    assert stored_state() == before


# --- approvals -----------------------------------------------------------------------------------------


def test_the_author_cannot_approve_and_the_release_stays_open_for_others(careful, workspace, by_alice):
    release = request_release(workspace, [careful], message="Go", by=by_alice)
    refused(NotAllowed, "A member other than the requester", lambda: approve_release(release, by=by_alice))
    refused(NotAllowed, "need approval from another member", lambda: run_release(release, by=by_alice))


def test_an_approval_after_a_change_moves_no_label_and_says_what_changed(
    careful, workspace, soul, by_alice, bob
):
    release = request_release(workspace, [careful], message="Go", by=by_alice)
    reword(soul)
    moves = list(LabelMove.unscoped.values())
    voided = approve_release(release, by=Actor.person(bob))
    assert voided.status == ReleaseStatus.VOIDED
    assert "Changed after the request: Careful" in voided.reason
    assert list(LabelMove.unscoped.values()) == moves


# --- what cannot be built ------------------------------------------------------------------------------


def test_an_archived_agent_is_not_rebuilt_from_its_page(as_bob, quick):
    archive_record(quick.agent, by=BY)
    before = stored_state()
    answer = as_bob.post("/w/harbour/agents/quick/versions/rebuild/", follow=True)
    assert "“Quick” is archived. Restore it to build its prompts." in answer.content.decode()
    assert stored_state() == before
    assert not BuildCause.unscoped.exists()


def test_bots_keep_their_version_when_a_layout_is_gone(elsewhere):
    stage = make_stage(elsewhere)
    served = stage.fetch()
    before = stored_state()
    Agent.unscoped.filter(pk=stage.agent.pk).update(layout="harbour")
    assert rebuild_agents(elsewhere, [stage.agent.pk]).failed == 1
    assert stored_state() == before
    assert stage.prompt.problem == (
        "Not built: The layout “harbour” no longer exists. Choose another layout for this agent."
    )
    again = stage.fetch()
    assert (again.text, again.number) == (served.text, served.number)
    label = PromptLabel.unscoped.get(prompt=stage.prompt, name=PRODUCTION)
    assert label.version_id == stage.prompt.latest_id


def test_a_layout_that_is_gone_cannot_be_saved_again(as_bob, quick):
    Agent.unscoped.filter(pk=quick.agent_id).update(layout="harbour")
    form = {"name": "Quick", "slug": "quick", "layout": "harbour", "revision": str(quick.agent.revision)}
    before = stored_state()
    answer = as_bob.post("/w/harbour/agents/quick/edit/", form)
    assert answer.status_code == 422
    assert stored_state() == before
