"""What labels, releases and rebuilds refuse: a clear word, and nothing moved; what other files do not ask."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from personas.actors import Actor
from personas.errors import DomainError
from personas.models import Agent
from personas.services.records import archive_record, edit_record
from prompts.errors import MovedMeanwhile, NotAllowed, StrangeVersion, UnknownLabel
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
from prompts.proving import move_row
from prompts.services.building import rebuild_agents
from prompts.services.labelling import move_label, roll_back, take_off_label
from prompts.services.releasing import approve_release, carry_out_release, request_release
from tests.factories import BY, make_agent, make_channel, make_soul
from tests.prompts.serving_stage import make_stage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def soul(workspace):
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def quick(workspace, soul) -> Any:
    """An automatic agent's prompt with two versions."""
    return made(workspace, "quick", soul, "automatic")


@pytest.fixture
def careful(workspace, soul) -> Any:
    """A reviewed agent's."""
    return made(workspace, "careful", soul, "reviewed")


def made(workspace: Any, slug: str, soul: Any, policy: str) -> Any:
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


def standing() -> list[Any]:
    """Where everything stands: versions, labels, moves, releases, and the heads of the prompts."""
    kinds = (PromptVersion, PromptLabel, LabelMove, Release)
    heads = ("pk", "latest", "last_hash", "last_move_hash", "is_held")
    rows = [list(kind.unscoped.order_by("pk").values()) for kind in kinds]
    return [*rows, list(AgentPrompt.unscoped.order_by("pk").values(*heads))]


def refused(error: type[DomainError], words: str, verb: Callable[[], object]) -> None:
    before = standing()
    with pytest.raises(error, match=words):
        verb()
    assert standing() == before


# --- a label that is not there, a version that is another's --------------------------------------------


def test_an_unknown_label_is_neither_taken_off_nor_rolled_back(quick, by_alice):
    refused(
        UnknownLabel,
        "There is no label “canary” on this prompt",
        lambda: take_off_label(quick, "canary", by=by_alice),
    )
    refused(
        UnknownLabel,
        "“canary” points at nothing on",
        lambda: roll_back([quick], by=by_alice, note="Back.", label="canary"),
    )


def test_of_many_prompts_one_without_the_label_keeps_all_where_they_are(quick, careful, by_alice):
    refused(
        UnknownLabel,
        "“production” points at nothing on Careful",
        lambda: roll_back([quick, careful], by=by_alice, note="Back."),
    )


def test_another_agents_version_is_refused_by_every_verb_that_takes_one(quick, careful, by_alice):
    strange = numbered(careful, 1)
    words = "belongs to another prompt"
    refused(StrangeVersion, words, lambda: move_label(quick, "canary", strange, expected=None, by=by_alice))
    refused(StrangeVersion, words, lambda: roll_back([quick], by=by_alice, note="Back.", to=strange))


def test_another_workspaces_version_is_refused_too(quick, elsewhere, by_alice):
    agent = make_agent(elsewhere, "spy", channels=[make_channel(elsewhere, "attic")])
    strange = numbered(prompt_of(agent), 1)
    words = "belongs to another prompt"
    refused(StrangeVersion, words, lambda: move_label(quick, "canary", strange, expected=None, by=by_alice))


def test_a_number_that_only_another_agents_prompt_has_is_not_found(as_alice, quick, careful, soul):
    reword(soul)
    archive_record(quick.agent, by=BY)
    for _ in range(2):
        reword(soul)
    before, number = standing(), prompt_of(careful.agent).last_number
    assert number > prompt_of(quick.agent).last_number
    base = f"/w/harbour/prompts/{quick.pk}"
    assert as_alice.post(f"{base}/versions/{number}/label/", {"label": "canary"}).status_code == 404
    assert as_alice.post(f"{base}/roll-back/", {"note": "Back.", "to": str(number)}).status_code == 404
    assert standing() == before


# --- approvals -----------------------------------------------------------------------------------------


def test_the_author_cannot_approve_and_the_release_stays_open_for_others(careful, workspace, by_alice):
    release = request_release(workspace, [careful], message="Go", by=by_alice)
    refused(NotAllowed, "Somebody else", lambda: approve_release(release, by=by_alice))
    refused(NotAllowed, "must approve this first", lambda: carry_out_release(release, by=by_alice))


def test_an_approval_after_a_change_moves_no_label_and_says_what_changed(
    careful, workspace, soul, by_alice, bob
):
    release = request_release(workspace, [careful], message="Go", by=by_alice)
    reword(soul)
    moves = list(LabelMove.unscoped.values())
    voided = approve_release(release, by=Actor.person(bob))
    assert voided.status == ReleaseStatus.VOIDED
    assert "Changed since it was asked for: Careful" in voided.reason
    assert list(LabelMove.unscoped.values()) == moves


# --- two at once ---------------------------------------------------------------------------------------


def at_once(*verbs: Callable[[], object]) -> list[BaseException]:
    """All verbs in threads of their own, begun together; what they raised."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(verbs))

    def run(verb: Callable[[], object]) -> None:
        try:
            gate.wait(20)
            verb()
        except BaseException as error:  # noqa: BLE001  # told to the test
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(verb,)) for verb in verbs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


def chain_of(prompt: AgentPrompt) -> list[str]:
    """The moves that do not follow from the one before."""
    found, previous = [], ""
    rows = LabelMove.unscoped.filter(prompt=prompt).order_by("sequence")
    for place, move in enumerate(rows.select_related("prompt", "version", "previous_version"), 1):
        if (
            move.sequence != place
            or move.previous_hash != previous
            or move_row(move).hash(previous) != move.hash
        ):
            found.append(f"move {move.sequence}")
        previous = move.hash
    return found


def race(prompt: AgentPrompt, by: Any) -> list[BaseException]:
    """Eight people, all of whom saw the label at version 1, move it to 2."""
    first, second = numbered(prompt, 1), numbered(prompt, 2)
    move_label(prompt, "canary", first, expected=None, by=by)

    def verb() -> None:
        move_label(prompt, "canary", second, expected=first.pk, by=by)

    return at_once(*[verb] * 8)


def test_of_label_moves_that_race_one_wins_and_the_others_are_told(quick, by_alice):
    errors = race(quick, by_alice)
    assert [type(error) for error in errors] == [MovedMeanwhile] * 7
    assert "was moved after you looked" in str(errors[0])
    assert LabelMove.unscoped.filter(prompt=quick, label="canary").count() == 2
    assert PromptLabel.unscoped.get(name="canary").version.number == 2
    assert chain_of(quick) == []


def test_a_roll_back_pressed_twice_at_once_goes_one_step_back(quick, soul, by_alice):
    reword(soul)
    places = {quick.pk: (numbered(quick, 3).pk, numbered(quick, 2).pk)}

    def verb() -> None:
        roll_back([quick], by=by_alice, note="Too wise.", expected=places)

    errors = at_once(*[verb] * 4)
    assert [type(error) for error in errors] == [MovedMeanwhile] * 3
    assert PromptLabel.unscoped.get(prompt=quick, name=PRODUCTION).version.number == 2


@pytest.mark.planted
def test_without_the_lock_a_race_is_not_refused_in_words(quick, by_alice, monkeypatch):
    """The fault: the prompt is read but not held."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite lets one writer in at a time, lock or no lock")
    monkeypatch.setattr("django.db.models.query.QuerySet.select_for_update", lambda self, **_: self.all())
    errors = race(quick, by_alice)
    assert [type(error) for error in errors] != [MovedMeanwhile] * 7 or chain_of(quick)


# --- what cannot be built ------------------------------------------------------------------------------


def test_an_archived_agent_is_not_rebuilt_from_its_page(as_bob, quick):
    archive_record(quick.agent, by=BY)
    before = standing()
    answer = as_bob.post("/w/harbour/agents/quick/versions/rebuild/", follow=True)
    assert "“Quick” is archived. Restore it to build its prompts." in answer.content.decode()
    assert standing() == before
    assert not BuildCause.unscoped.exists()


def test_where_a_layout_is_gone_bots_go_on_getting_what_they_got(workspace):
    stage = make_stage(workspace)
    served = stage.fetch()
    before = standing()
    Agent.unscoped.filter(pk=stage.agent.pk).update(layout="harbour")
    assert rebuild_agents(workspace, [stage.agent.pk]).failed == 1
    assert standing() == before
    assert stage.prompt.problem == (
        "Not built: There is no layout “harbour” any more. Choose another for this agent."
    )
    again = stage.fetch()
    assert (again.text, again.number) == (served.text, served.number)
    label = PromptLabel.unscoped.get(prompt=stage.prompt, name=PRODUCTION)
    assert label.version_id == stage.prompt.latest_id


def test_a_layout_that_is_gone_cannot_be_saved_again(as_bob, quick):
    Agent.unscoped.filter(pk=quick.agent_id).update(layout="harbour")
    form = {"name": "Quick", "slug": "quick", "layout": "harbour", "revision": str(quick.agent.revision)}
    before = standing()
    answer = as_bob.post("/w/harbour/agents/quick/edit/", form)
    assert answer.status_code == 422
    assert standing() == before
