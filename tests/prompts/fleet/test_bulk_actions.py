"""The fleet's verbs: what is done with many prompts at once, by whom, and what refuses all of it."""

import pytest

from core.task_queue import breaker
from personas.models import Agent, AuditEvent
from personas.records.services import edit_record
from personas.roles import Role
from prompts.labels.services import protect_label
from prompts.models import AgentPrompt, BuildCause, Release
from tests.factories import BY, join, make_agent, make_channel, make_user
from tests.prompts.fleet.fleet_pages import BULK, bulk, look, told, words_of
from tests.prompts.fleet.fleet_stage import built, production_of, prompt_of, reword, set_fleet
from tests.prompts.module_stage import (  # noqa: F401  # fixtures
    Standing,
    a_copy_of_the_stage,
    alice_logged_in,
    bob_logged_in,
    standing,
    standing_alice,
    standing_bob,
    standing_workspace,
)

pytestmark = pytest.mark.django_db


def set_stage(standing: Standing) -> None:  # noqa: F811  # what the fixture of that name is given
    """Also a viewer and a reviewer; and a second version, where the first was in production before."""
    set_fleet(standing)
    for name, role in (("Vera", Role.VIEWER), ("Rita", Role.REVIEWER)):
        person = make_user(name)
        join(standing.workspace, person, role)
        standing.let_in(name, person)
    reword(standing.soul, "Be wise.", standing.pilot, standing.careful)


@pytest.fixture
def pilot(stage):
    return stage.pilot


@pytest.fixture
def careful(stage):
    return stage.careful


@pytest.fixture
def soul(stage):
    return stage.soul


@pytest.fixture
def viewers(stage):
    return stage.client("Vera")


@pytest.fixture
def reviewers(stage):
    return stage.client("Rita")


def test_chosen_prompts_are_ticked_for_a_release(as_bob, pilot, careful):
    answer = bulk(as_bob, "release", prompt_of(careful), prompt_of(pilot))
    assert [one["is_ticked"] for one in answer.context["choices"]] == [True]
    page = answer.content.decode()
    assert "You chose 2 prompts. 1 is in production as it is." in page
    address = answer.redirect_chain[-1][0]
    choice = answer.context["choices"][0]["value"]
    as_bob.post(address, {"message": "First words", "prompts": [choice]})
    assert Release.unscoped.get().items.count() == 1


def test_picks_that_are_no_ids_of_ours_pick_nothing(as_bob, careful):
    for said in ("abc", "9" * 40, "1,,x", "٣"):
        assert as_bob.get(f"/w/harbour/releases/new/?prompts={said}").status_code == 200


def test_production_goes_back_on_many_at_once_after_a_page_that_says_what_moves(as_alice, pilot, careful):
    prompts = [prompt_of(pilot), prompt_of(pilot, "bridge"), prompt_of(careful)]
    answer = bulk(as_alice, "roll-back", *prompts)
    page = answer.content.decode()
    assert "Roll back 2 prompts in production" in page
    assert "Nothing is in production yet." in page
    assert production_of(pilot) == 2
    seen = [one.confirmation for one in answer.context["moving"]]
    answer = bulk(as_alice, "roll-back", *prompts[:2], seen=seen)
    assert answer.status_code == 422
    assert "This field is required" in answer.content.decode()
    answer = bulk(as_alice, "roll-back", *prompts[:2], seen=seen, note="Too wise.")
    assert "Rolled 2 prompts back in production." in told(answer)
    assert [production_of(pilot), production_of(pilot, "bridge")] == [1, 1]
    assert AgentPrompt.unscoped.filter(is_held=True).count() == 2
    assert AuditEvent.unscoped.filter(verb="rolled back").count() == 2


def test_a_roll_back_that_was_overtaken_is_shown_again(as_alice, pilot, soul):
    prompt = prompt_of(pilot)
    seen = [one.confirmation for one in bulk(as_alice, "roll-back", prompt).context["moving"]]
    reword(soul, "Be wiser.", pilot)
    answer = bulk(as_alice, "roll-back", prompt, seen=seen, note="Too wise.")
    assert (answer.status_code, production_of(pilot)) == (422, 3)
    assert "Something moved after you looked." in answer.content.decode()


def test_a_refusal_of_the_verb_stands_on_the_page_and_nothing_moves(reviewers, workspace, by_alice, pilot):
    prompt = prompt_of(pilot)
    protect_label(workspace, "production", protected=True, by=by_alice)
    seen = [one.confirmation for one in bulk(reviewers, "roll-back", prompt).context["moving"]]
    answer = bulk(reviewers, "roll-back", prompt, seen=seen, note="Too wise.")
    assert "only owners move it" in answer.content.decode()
    assert production_of(pilot) == 2


def test_nothing_to_go_back_to_is_said_and_nothing_moves(as_alice, workspace, stage):
    fresh = make_agent(workspace, "fresh", channels=stage.channels[:1])
    built(fresh)
    answer = bulk(as_alice, "roll-back", prompt_of(fresh))
    assert "production was never anywhere before" in told(answer)


@pytest.fixture
def no_workers(monkeypatch):
    """Nothing reaches a worker, so that what was asked for stays to be seen."""
    monkeypatch.setattr(breaker, "open_until", float("inf"))


@pytest.mark.usefixtures("no_workers")
def test_few_are_rebuilt_at_once_and_many_by_the_workers(as_bob, pilot, careful, soul, settings):
    soul.refresh_from_db()
    edit_record(soul, {"text": "Be kind."}, expected=soul.revision, by=BY)
    answer = bulk(as_bob, "rebuild", prompt_of(pilot))
    assert "Built 2 prompts anew: 2 have other words now." in told(answer)
    assert production_of(pilot) == 3
    assert "every word is as it was" in told(bulk(as_bob, "rebuild", prompt_of(pilot)))
    settings.DRAMATIS_BUILD_AT_ONCE = 1
    answer = bulk(as_bob, "rebuild", prompt_of(pilot), prompt_of(careful))
    assert "3 prompts are being rebuilt." in told(answer)
    assert "0 of 3" in answer.content.decode()
    causes = (
        BuildCause.unscoped.filter(cause__kind="rebuild").order_by("agent").values_list("agent", "cause__by")
    )
    assert list(causes) == [(pilot.pk, "bob@example.com"), (careful.pk, "bob@example.com")]


def test_a_failed_rebuild_is_told(as_bob, pilot):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    assert "2 prompts could not be built and stay as they were." in told(
        bulk(as_bob, "rebuild", prompt_of(pilot))
    )


def test_one_foreign_or_unknown_id_refuses_all(as_alice, pilot, elsewhere):
    theirs = make_agent(elsewhere, "spy", channels=[make_channel(elsewhere, "deck")])
    built(theirs)
    gone = prompt_of(pilot, "bridge")
    AgentPrompt.unscoped.filter(pk=gone.pk).update(is_live=False)
    mine = prompt_of(pilot)
    for verb in ("release", "rebuild", "roll-back"):
        for stranger in (prompt_of(theirs).pk, gone.pk, 2**40, "9" * 40, "x", "-1", "٣"):
            assert bulk(as_alice, verb, mine, stranger).status_code == 404, (verb, stranger)
    assert not Release.unscoped.exists()


def test_nothing_chosen_is_said_and_an_unknown_verb_is_not_there(as_alice, pilot):
    answer = bulk(as_alice, "rebuild", back="/w/harbour/?q=pilot")
    assert "Choose at least one prompt." in told(answer)
    assert answer.redirect_chain[-1][0] == "/w/harbour/?q=pilot"
    assert bulk(as_alice, "erase", prompt_of(pilot)).status_code == 404
    assert as_alice.get(BULK).status_code == 405


def test_each_verb_takes_its_own_permission(as_bob, viewers, reviewers, pilot):
    prompt = prompt_of(pilot)
    allowed = {
        (name, verb): bulk(client, verb, prompt, follow=False).status_code
        for name, client in (("editor", as_bob), ("reviewer", reviewers), ("viewer", viewers))
        for verb in ("release", "rebuild", "roll-back")
    }
    assert {pair for pair, status in allowed.items() if status != 403} == {
        ("editor", "release"),
        ("editor", "rebuild"),
        ("reviewer", "roll-back"),
    }
    assert set(allowed.values()) == {200, 302, 403}
    assert "data-pick" not in words_of(look(viewers))
