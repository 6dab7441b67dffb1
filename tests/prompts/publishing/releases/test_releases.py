"""Release services: permissions, approval, exact digests, roll-back."""

from typing import Any, NamedTuple

import pytest

from personas.actors import Actor
from personas.errors import InvalidInput
from personas.models import AuditEvent, Soul
from personas.records.services import archive_record, edit_record, restore_revision
from prompts.errors import (
    ForeignVersion,
    LabelConflict,
    NotAllowed,
    NothingToRelease,
    ReleaseClosed,
)
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    BuildCause,
    LabelMove,
    PromptLabel,
    PromptVersion,
    ReleaseStatus,
)
from prompts.publishing.builds.services import get_build_author, rebuild_agents
from prompts.publishing.labels.services import (
    move_label,
    protect_label,
    remove_label,
    roll_back,
    unpin_production,
)
from prompts.publishing.releases.services import (
    approve_release,
    override_release,
    reject_release,
    request_release,
    run_release,
)
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul
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
    """Two prompts with one soul: one reviewed, one released automatically."""

    soul: Soul
    careful: AgentPrompt
    quick: AgentPrompt


def set_stage(shared: SharedCast) -> Ship:
    workspace = shared.workspace
    deck, soul = make_channel(workspace, "deck"), make_soul(workspace, text="Be brave.")
    careful = make_agent(workspace, "careful", soul=soul, channels=[deck], release_policy="reviewed")
    quick = make_agent(workspace, "quick", soul=soul, channels=[deck])
    return Ship(soul, prompt_of(careful), prompt_of(quick))


@pytest.fixture
def soul(props: Ship) -> Soul:
    return props.soul


@pytest.fixture
def careful(props: Ship) -> AgentPrompt:
    return props.careful


@pytest.fixture
def quick(props: Ship) -> AgentPrompt:
    return props.quick


@pytest.fixture
def by_bob(bob) -> Actor:
    return Actor.person(bob)


def prompt_of(agent) -> Any:
    rows = AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest", "agent")
    return rows.get(agent=agent)


def again(prompt: AgentPrompt) -> Any:
    return prompt_of(prompt.agent)


def production(prompt: AgentPrompt) -> int | None:
    row = PromptLabel.unscoped.filter(prompt=prompt, name=PRODUCTION).select_related("version").first()
    return row.version.number if row else None


def reword(soul, text: str) -> None:
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)


def test_a_reviewed_agent_goes_live_with_a_second_users_approval(careful, workspace, by_alice, by_bob):
    release = request_release(workspace, [careful], message="First", by=by_alice)
    with pytest.raises(NotAllowed, match="need approval from another member"):
        run_release(release, by=by_alice)
    approve_release(release, by=by_bob)
    done = run_release(release, by=by_alice)
    assert (done.status, production(careful)) == (ReleaseStatus.RELEASED, 1)
    assert LabelMove.unscoped.get(prompt=careful).reason == "release"


def test_the_requester_cannot_approve(careful, workspace, by_alice):
    release = request_release(workspace, [careful], message="First", by=by_alice)
    with pytest.raises(NotAllowed, match="A member other than the requester"):
        approve_release(release, by=by_alice)
    assert production(careful) is None


# --- four eyes -----------------------------------------------------------------------------------------


def release_first(workspace, careful, by_alice, by_bob) -> None:
    run_release(
        approve_release(request_release(workspace, [careful], message="First", by=by_alice), by=by_bob),
        by=by_alice,
    )


def test_the_author_of_a_change_cannot_approve_it(careful, workspace, soul, by_alice, by_bob):
    release_first(workspace, careful, by_alice, by_bob)
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=by_bob)
    reword(soul, "Be wiser.")
    release = request_release(workspace, [careful], message="Second", by=by_alice)
    with pytest.raises(NotAllowed, match="because you changed Careful · Deck"):
        approve_release(release, by=by_bob)
    assert production(careful) == 1
    # A workspace without a third member can still release it, with a reason.
    override_release(release, reason="Nobody else is here.", by=by_bob)
    assert production(careful) == 3


def test_changes_before_the_released_version_do_not_count(careful, workspace, soul, by_alice, by_bob):
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=by_alice)
    release = request_release(workspace, [careful], message="First", by=by_bob)
    with pytest.raises(NotAllowed, match="because you changed"):
        approve_release(release, by=by_alice)
    override_release(release, reason="The first one.", by=by_alice)
    reword(soul, "Be wiser.")
    release = request_release(workspace, [again(careful)], message="Second", by=by_bob)
    assert approve_release(release, by=by_alice).status == ReleaseStatus.APPROVED


def test_the_author_of_a_change_without_a_revision_cannot_approve_it(careful, workspace, by_alice, by_bob):
    memory = make_memory(workspace, "One.")
    release_first(workspace, again(careful), by_alice, by_bob)
    archive_record(memory, by=by_bob)
    release = request_release(workspace, [again(careful)], message="Second", by=by_alice)
    with pytest.raises(NotAllowed, match="because you changed"):
        approve_release(release, by=by_bob)


def test_the_author_of_a_change_whose_build_failed_cannot_approve_it(
    careful, soul, by_alice, by_bob, monkeypatch
):
    workspace = soul.workspace
    release_first(workspace, careful, by_alice, by_bob)
    with monkeypatch.context() as fault:
        fault.setattr("prompts.publishing.builds.services.try_compile_prompt", lambda *args: None)
        edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=by_bob)
    # The causes of the failed build are deleted: only the revision tells who wrote the text.
    rebuild_agents(workspace, [careful.agent_id])
    assert again(careful).latest.causes == [{"kind": "rebuild"}]
    release = request_release(workspace, [again(careful)], message="Second", by=by_alice)
    with pytest.raises(NotAllowed, match="because you changed"):
        approve_release(release, by=by_bob)


def test_a_build_keeps_a_cause_of_every_author():
    causes = [BuildCause(cause={"by": "first@example.com"})]
    causes += [BuildCause(cause={"by": "second@example.com", "message": str(n)}) for n in range(30)]
    author = get_build_author(causes)
    assert [cause["by"] for cause in author.causes] == ["first@example.com"] + ["second@example.com"] * 20
    assert author.message == "29"


@pytest.mark.slow
def test_lifting_the_review_releases_nothing(careful, workspace, soul, by_alice, by_bob):
    release_first(workspace, careful, by_alice, by_bob)
    reword(soul, "Be wise.")
    agent = careful.agent
    lift = {"release_policy": "automatic", "reason": "A new team."}
    agent = edit_record(agent, lift, expected=agent.revision, by=by_alice)
    reword(soul, "Be wiser.")
    assert production(careful) == 1
    agent = edit_record(agent, {"release_policy": "reviewed"}, expected=agent.revision, by=by_alice)
    assert production(careful) == 1
    restore_revision(agent, 1, expected=agent.revision, by=by_alice)
    agent = edit_record(agent, lift, expected=agent.revision, by=by_alice)
    with pytest.raises(NotAllowed, match="need approval"):
        unpin_production(again(careful), by=by_alice)
    release_first(workspace, again(careful), by_alice, by_bob)
    assert production(careful) == again(careful).latest.number
    reword(soul, "Be wisest.")
    assert production(careful) == again(careful).latest.number


def test_a_change_voids_a_request_and_an_approval(careful, workspace, soul, by_alice, by_bob):
    release = request_release(workspace, [careful], message="First", by=by_alice)
    approve_release(release, by=by_bob)
    reword(soul, "Be wise.")
    voided = run_release(release, by=by_alice)
    assert (voided.status, production(careful)) == (ReleaseStatus.VOIDED, None)
    with pytest.raises(ReleaseClosed):
        approve_release(release, by=by_bob)


def test_an_override_needs_a_reason_and_shows(careful, workspace, by_alice):
    release = request_release(workspace, [careful], message="First", by=by_alice)
    with pytest.raises(InvalidInput, match="reason"):
        override_release(release, reason=" ", by=by_alice)
    override_release(release, reason="The old one insults people.", by=by_alice)
    assert production(careful) == 1
    assert AuditEvent.unscoped.filter(verb="overridden", kind="release").exists()


def test_a_release_of_many_moves_all_or_none(careful, quick, workspace, by_alice, by_bob):
    roll_back_ready = request_release(workspace, [careful, quick], message="Both", by=by_alice)
    assert [item.prompt for item in roll_back_ready.items.all()] == [careful]
    approve_release(roll_back_ready, by=by_bob)
    run_release(roll_back_ready, by=by_alice)
    with pytest.raises(NothingToRelease):
        request_release(workspace, [careful, quick], message="Again", by=by_alice)


def test_rolling_back_holds_production_until_it_follows_again(quick, soul, by_alice):
    reword(soul, "Be wise.")
    assert production(quick) == 2
    roll_back([again(quick)], by=by_alice, note="Too wise.")
    assert production(quick) == 1
    reword(soul, "Be wiser.")
    assert (again(quick).latest.number, production(quick)) == (3, 1)
    unpin_production(again(quick), by=by_alice)
    assert production(quick) == 3
    reword(soul, "Be wisest.")
    assert production(quick) == 4


def test_a_label_of_ones_own_moves_and_comes_off(quick, soul, by_bob):
    reword(soul, "Be wise.")
    first, second = PromptVersion.unscoped.filter(prompt=quick).order_by("number")
    move_label(again(quick), "canary", second, expected=None, by=by_bob)
    with pytest.raises(LabelConflict):
        move_label(again(quick), "canary", first, expected=first.pk, by=by_bob)
    move_label(again(quick), "canary", first, expected=second.pk, by=by_bob)
    remove_label(again(quick), "canary", by=by_bob)
    moves = LabelMove.unscoped.filter(prompt=quick, label="canary").order_by("sequence")
    assert [move.version_id for move in moves] == [second.pk, first.pk, None]


def test_only_owners_move_a_protected_label(quick, soul, workspace, by_alice, by_bob):
    protect_label(workspace, "canary", True, by=by_alice)
    version = again(quick).latest
    with pytest.raises(NotAllowed, match="protected"):
        move_label(again(quick), "canary", version, expected=None, by=by_bob)
    move_label(again(quick), "canary", version, expected=None, by=by_alice)
    with pytest.raises(NotAllowed, match="Only owners"):
        protect_label(workspace, "canary", False, by=by_bob)


def test_latest_bad_names_and_strange_versions_are_refused(quick, careful, by_alice):
    with pytest.raises(NotAllowed, match="is reserved for the newest build"):
        move_label(again(quick), "latest", again(quick).latest, expected=None, by=by_alice)
    with pytest.raises(InvalidInput, match="label"):
        move_label(again(quick), "Not A Slug", again(quick).latest, expected=None, by=by_alice)
    with pytest.raises(ForeignVersion):
        move_label(again(quick), "canary", again(careful).latest, expected=None, by=by_alice)


def test_a_rejected_release_says_why_and_moves_nothing(careful, workspace, by_alice, by_bob):
    release = request_release(workspace, [careful], message="First", by=by_alice)
    reject_release(release, reason="Too short.", by=by_bob)
    with pytest.raises(ReleaseClosed):
        run_release(release, by=by_alice)
    assert production(careful) is None


def test_what_was_never_production_cannot_be_rolled_back_to(careful, workspace, soul, by_alice, by_bob):
    make_memory(workspace, "One.")
    approve_release(
        release := request_release(workspace, [again(careful)], message="R", by=by_alice), by=by_bob
    )
    run_release(release, by=by_alice)
    first = PromptVersion.unscoped.get(prompt=careful, number=1)
    with pytest.raises(NotAllowed, match="never"):
        roll_back([again(careful)], by=by_alice, note="Back.", to=first)
