"""Bulk actions of the fleet: effects, permissions and rejected selections."""

import pytest

from core.task_queue import breaker
from personas.models import Agent, AuditEvent
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import AgentPrompt, BuildCause, Release
from prompts.publishing.labels.services import protect_label
from tests.factories import BY, join, make_agent, make_channel, make_user
from tests.prompts.studio.fleet.fleet_pages import (
    BULK,
    get_fleet_page,
    get_html,
    get_messages_text,
    post_bulk_action,
)
from tests.prompts.studio.fleet.fleet_stage import (
    change_soul,
    get_production_number,
    get_prompt,
    make_fleet,
    rebuild,
)
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
    shared_stage,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


def set_stage(shared: SharedCast) -> None:
    """Add a viewer, a reviewer and a second version; the first version was in production before."""
    make_fleet(shared)
    for name, role in (("Vera", Role.VIEWER), ("Rita", Role.REVIEWER)):
        user = make_user(name)
        join(shared.workspace, user, role)
        shared.sign_in(name, user)
    change_soul(shared.soul, "Be wise.", shared.pilot, shared.careful)


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


def test_selected_prompts_are_selected_on_the_release_form(as_bob, pilot, careful):
    response = post_bulk_action(as_bob, "release", get_prompt(careful), get_prompt(pilot))
    assert [target["is_ticked"] for target in response.context["choices"]] == [True]
    page = response.content.decode()
    assert "2 prompts selected. 1 has nothing to release." in page
    url = response.redirect_chain[-1][0]
    choice = response.context["choices"][0]["value"]
    as_bob.post(url, {"message": "First words", "prompts": [choice]})
    assert Release.unscoped.get().items.count() == 1


def test_a_release_form_says_when_it_does_not_show_all_selected_prompts(as_bob, stage, careful, monkeypatch):
    second = make_agent(
        stage.workspace, "second", soul=stage.soul, channels=stage.channels[:1], release_policy="reviewed"
    )
    rebuild(second)
    selected = ",".join(str(get_prompt(agent).pk) for agent in (careful, second))
    monkeypatch.setattr("prompts.publishing.releases.views.MAX_CHOICES", 1)
    response = as_bob.get(f"/w/harbour/releases/new/?prompts={selected}")
    page = response.content.decode()
    assert len(response.context["choices"]) == 1
    assert "2 prompts selected." in page
    assert "to release." not in page.split("2 prompts selected.")[1].split("</p>")[0]
    assert "Only the first 1 prompts are shown. Request another release for the others." in page


@pytest.mark.slow
def test_invalid_prompt_ids_select_nothing_on_the_release_form(as_bob, careful):
    for value in ("abc", "9" * 40, "1,,x", "٣"):
        assert as_bob.get(f"/w/harbour/releases/new/?prompts={value}").status_code == 200


@pytest.mark.slow
def test_a_bulk_rollback_runs_after_confirmation(as_alice, pilot, careful):
    prompts = [get_prompt(pilot), get_prompt(pilot, "bridge"), get_prompt(careful)]
    response = post_bulk_action(as_alice, "roll-back", *prompts)
    page = response.content.decode()
    assert "Roll back 2 prompts" in page
    assert "Nothing in production yet." in page
    assert get_production_number(pilot) == 2
    confirmations = [target.confirmation for target in response.context["moving"]]
    response = post_bulk_action(as_alice, "roll-back", *prompts[:2], seen=confirmations)
    assert response.status_code == 422
    assert "This field is required" in response.content.decode()
    response = post_bulk_action(as_alice, "roll-back", *prompts[:2], seen=confirmations, note="Too wise.")
    assert "Rolled back 2 prompts." in get_messages_text(response)
    assert [get_production_number(pilot), get_production_number(pilot, "bridge")] == [1, 1]
    assert AgentPrompt.unscoped.filter(is_pinned=True).count() == 2
    assert AuditEvent.unscoped.filter(verb="rolled back").count() == 2


def test_a_rollback_must_be_confirmed_again_if_a_label_moved(as_alice, pilot, soul):
    prompt = get_prompt(pilot)
    confirmations = [
        target.confirmation for target in post_bulk_action(as_alice, "roll-back", prompt).context["moving"]
    ]
    change_soul(soul, "Be wiser.", pilot)
    response = post_bulk_action(as_alice, "roll-back", prompt, seen=confirmations, note="Too wise.")
    assert (response.status_code, get_production_number(pilot)) == (422, 3)
    assert "Production moved after you opened this page." in response.content.decode()


def test_a_rejected_rollback_shows_the_error_and_moves_nothing(reviewers, workspace, by_alice, pilot):
    prompt = get_prompt(pilot)
    protect_label(workspace, "production", protected=True, by=by_alice)
    confirmations = [
        target.confirmation for target in post_bulk_action(reviewers, "roll-back", prompt).context["moving"]
    ]
    response = post_bulk_action(reviewers, "roll-back", prompt, seen=confirmations, note="Too wise.")
    assert "Only owners can move it" in response.content.decode()
    assert get_production_number(pilot) == 2


def test_a_rollback_without_an_earlier_version_shows_an_error(as_alice, workspace, stage):
    fresh = make_agent(workspace, "fresh", channels=stage.channels[:1])
    rebuild(fresh)
    response = post_bulk_action(as_alice, "roll-back", get_prompt(fresh))
    assert "have no earlier version that production can return to" in get_messages_text(response)


@pytest.fixture
def no_workers(monkeypatch):
    """Keep jobs from the workers, so that the requested builds stay pending."""
    monkeypatch.setattr(breaker, "open_until", float("inf"))


@pytest.mark.slow
@pytest.mark.usefixtures("no_workers")
def test_few_prompts_are_rebuilt_at_once_and_many_by_the_workers(as_bob, pilot, careful, soul, settings):
    soul.refresh_from_db()
    edit_record(soul, {"text": "Be kind."}, expected=soul.revision, by=BY)
    response = post_bulk_action(as_bob, "rebuild", get_prompt(pilot))
    assert "Rebuilt 2 prompts: 2 have a new version." in get_messages_text(response)
    assert get_production_number(pilot) == 3
    assert "text is unchanged" in get_messages_text(post_bulk_action(as_bob, "rebuild", get_prompt(pilot)))
    settings.DRAMATIS_BUILD_AT_ONCE = 1
    response = post_bulk_action(as_bob, "rebuild", get_prompt(pilot), get_prompt(careful))
    assert "3 prompts are being rebuilt." in get_messages_text(response)
    assert "0 of 3" in response.content.decode()
    causes = (
        BuildCause.unscoped.filter(cause__kind="rebuild").order_by("agent").values_list("agent", "cause__by")
    )
    assert list(causes) == [(pilot.pk, "bob@example.com"), (careful.pk, "bob@example.com")]


def test_a_failed_rebuild_is_reported(as_bob, pilot):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    assert "2 prompts could not be built and are unchanged." in get_messages_text(
        post_bulk_action(as_bob, "rebuild", get_prompt(pilot))
    )


@pytest.mark.slow
def test_one_foreign_or_unknown_id_rejects_the_action(as_alice, pilot, elsewhere):
    theirs = make_agent(elsewhere, "spy", channels=[make_channel(elsewhere, "deck")])
    rebuild(theirs)
    inactive = get_prompt(pilot, "bridge")
    AgentPrompt.unscoped.filter(pk=inactive.pk).update(is_active=False)
    mine = get_prompt(pilot)
    for action in ("release", "rebuild", "roll-back"):
        for invalid_id in (get_prompt(theirs).pk, inactive.pk, 2**40, "9" * 40, "x", "-1", "٣"):
            assert post_bulk_action(as_alice, action, mine, invalid_id).status_code == 404, (
                action,
                invalid_id,
            )
    assert not Release.unscoped.exists()


def test_an_empty_selection_and_an_unknown_action_are_rejected(as_alice, pilot):
    response = post_bulk_action(as_alice, "rebuild", back="/w/harbour/?q=pilot")
    assert "Select at least one prompt." in get_messages_text(response)
    assert response.redirect_chain[-1][0] == "/w/harbour/?q=pilot"
    assert post_bulk_action(as_alice, "erase", get_prompt(pilot)).status_code == 404
    # After a reload, a page says what to do.
    reloaded = as_alice.get(BULK)
    assert reloaded.status_code == 405
    assert "Select the prompts again" in reloaded.content.decode()


@pytest.mark.slow
def test_each_action_requires_its_own_permission(as_bob, viewers, reviewers, pilot):
    prompt = get_prompt(pilot)
    statuses = {
        (name, action): post_bulk_action(client, action, prompt, follow=False).status_code
        for name, client in (("editor", as_bob), ("reviewer", reviewers), ("viewer", viewers))
        for action in ("release", "rebuild", "roll-back")
    }
    assert {pair for pair, status in statuses.items() if status != 403} == {
        ("editor", "release"),
        ("editor", "rebuild"),
        ("reviewer", "roll-back"),
    }
    assert set(statuses.values()) == {200, 302, 403}
    assert "data-pick" not in get_html(get_fleet_page(viewers))
