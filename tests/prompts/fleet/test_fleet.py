"""The fleet: agents and channels with how they stand, the bots that read them, and what waits."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from personas.api_keys.services import create_key
from personas.models import Agent
from personas.records.services import archive_record
from prompts.fleet.bot_activity import CHART_HEIGHT, get_bot_activity, get_hourly_chart
from prompts.labels.services import roll_back
from prompts.models import AgentPrompt, BuildCause
from prompts.settings.services import put_settings
from tests.factories import BY, make_agent, make_memory
from tests.prompts.fleet.fleet_pages import HOME, bulk, cell, flags, look, names_on, shown, words_of
from tests.prompts.fleet.fleet_stage import built, fetched, prompt_of, reword, set_fleet
from tests.prompts.module_stage import (  # noqa: F401  # fixtures
    a_copy_of_the_stage,
    alice_logged_in,
    bob_logged_in,
    standing,
    standing_alice,
    standing_bob,
    standing_workspace,
)

pytestmark = pytest.mark.django_db
set_stage = set_fleet


# --- the matrix ----------------------------------------------------------------------------------------


def test_a_cell_shows_what_production_is_at(as_bob, stage):
    answer = look(as_bob)
    one = cell(answer, "pilot")
    latest = prompt_of(stage.pilot).latest
    assert latest is not None
    assert (one.number, one.tokens, one.flags, one.bots) == (1, latest.tokens, [], 0)
    assert as_bob.get(one.url).status_code == 200
    assert cell(answer, "careful", "bridge") is None
    assert flags(answer, "careful") == ["Not released"]
    assert "Does not speak here" in words_of(answer)
    assert "nova" in words_of(answer)


def test_what_is_wrong_is_said_in_words(as_bob, by_alice, workspace, stage):
    pilot = stage.pilot
    reword(stage.soul, "Be wise.", pilot, stage.careful)
    roll_back([prompt_of(pilot)], by=by_alice, note="Too wise.")
    answer = look(as_bob)
    assert flags(answer, "pilot") == ["Held back", "1 ahead"]
    assert flags(answer, "pilot", "bridge") == []
    put_settings(workspace, {"token_budget": 10}, expected=0, by=BY)
    assert "Over budget" in flags(look(as_bob), "pilot", "bridge")
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    built(pilot, stage.careful)
    answer = look(as_bob)
    assert flags(answer, "pilot")[0] == "Not built"
    assert "There is no layout “harbour” any more." in words_of(answer)
    BuildCause(workspace=workspace, agent=pilot, cause={}).save()
    answer = look(as_bob)
    assert "0 of 2" in words_of(answer)
    assert flags(answer, "pilot", "bridge")[-1] == "Rebuilding"


def test_the_nearest_budget_counts(as_bob, workspace, stage):
    put_settings(workspace, {"token_budget": 900_000}, expected=0, by=BY)
    put_settings(workspace, {"token_budget": 800_000}, agent=stage.pilot, expected=0, by=BY)
    answer = look(as_bob)
    assert (cell(answer, "careful").budget, cell(answer, "pilot").budget) == (900_000, 800_000)
    put_settings(workspace, {"token_budget": 700_000}, channel=stage.channels[0], expected=0, by=BY)
    answer = look(as_bob)
    assert (cell(answer, "pilot").budget, cell(answer, "pilot", "bridge").budget) == (700_000, 800_000)


def test_each_state_finds_its_own(as_bob, workspace, stage):
    pilot, careful = stage.pilot, stage.careful
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    fetched(prompt_of(pilot), key)
    reword(stage.soul, "Be wise.", pilot)
    roll_back([prompt_of(pilot, "bridge")], by=BY, note="Too wise.")
    AgentPrompt.unscoped.filter(agent=careful).update(problem="Not built: no.")
    put_settings(workspace, {"token_budget": 1}, agent=careful, expected=0, by=BY)
    states = ("ahead", "problems", "over", "stale", "held", "nonsense")
    found = {state: look(as_bob, f"?state={state}") for state in states}
    both = ["Careful", "Pilot"]
    assert {state: names_on(answer) for state, answer in found.items()} == {
        "ahead": both,
        "problems": ["Careful"],
        "over": ["Careful"],
        "stale": ["Pilot"],
        "held": ["Pilot"],
        "nonsense": both,
    }
    assert not cell(found["held"], "pilot", "deck").is_match
    assert cell(found["held"], "pilot", "bridge").is_match


def test_filters_and_sorting_come_from_the_address(as_bob, stage):
    assert shown(as_bob, "?q=CARE") == ["Careful"]
    assert shown(as_bob, "?layout=nova") == ["Careful"]
    answer = look(as_bob, "?channel=bridge")
    assert names_on(answer) == ["Pilot"]
    assert [channel.slug for channel in answer.context["columns"]] == ["bridge"]
    assert shown(as_bob, "?channel=bridge&state=held") == []
    assert shown(as_bob, "?q=%00nobody") == []
    reword(stage.soul, "Be wise.", stage.pilot)
    assert shown(as_bob, "?sort=changed") == ["Pilot", "Careful"]
    assert shown(as_bob, "?sort=tokens")[0] == "Pilot"
    AgentPrompt.unscoped.filter(agent=stage.pilot).update(problem="Not built: no.")
    assert shown(as_bob, "?sort=problems") == ["Pilot", "Careful"]


def test_an_agent_without_a_channel_says_so_and_an_archived_one_is_gone(as_bob, workspace, stage):
    quiet = make_agent(workspace, "quiet")
    built(quiet)
    archive_record(stage.careful, by=BY)
    answer = look(as_bob)
    assert "Speaks on no channel yet." in words_of(answer)
    assert names_on(answer) == ["Pilot", "Quiet"]


# --- bots and figures ----------------------------------------------------------------------------------


def test_bots_are_counted_by_the_hour_and_told_behind_by_the_day(as_bob, workspace, stage):
    pilot = stage.pilot
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    other, _ = create_key(workspace, "Kiosk", {}, by=BY)
    deck, bridge, now = prompt_of(pilot), prompt_of(pilot, "bridge"), timezone.now()
    for _ in range(3):
        fetched(deck, key)
    fetched(deck, other, label="latest")
    fetched(bridge, other, at=now - timedelta(hours=3))
    fetched(bridge, other, at=now - timedelta(hours=30))
    fetched(bridge, other, at=now - timedelta(hours=2), label="production@2020-01-01", version_id=0)
    found = get_bot_activity(workspace)
    assert (found.recent, found.outdated) == ({deck.pk: 2}, {})
    reword(stage.soul, "Be wise.", pilot)
    found = get_bot_activity(workspace)
    assert (found.outdated, found.outdated_count) == ({deck.pk: 2, bridge.pk: 1}, 2)
    fetched(prompt_of(pilot), key)
    assert get_bot_activity(workspace).outdated == {deck.pk: 1, bridge.pk: 1}
    answer = look(as_bob)
    assert "1 bot behind" in flags(answer, "pilot")
    assert cell(answer, "pilot").bots == 2
    other.revoked_at = now
    other.save()
    assert get_bot_activity(workspace).outdated == {}


def test_bots_of_another_workspace_are_not_seen(workspace, elsewhere, stage):
    key, _ = create_key(elsewhere, "Spy", {}, by=BY)
    fetched(prompt_of(stage.pilot), key, workspace_id=elsewhere.pk)
    assert get_bot_activity(workspace).recent == {}
    assert get_hourly_chart(workspace).total == 0


def test_what_was_served_is_drawn_by_the_hour(as_bob, workspace, stage):
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    prompt, now = prompt_of(stage.pilot), timezone.now().replace(minute=30)
    for back, count in ((0, 1), (1, 4), (23, 2), (24, 7)):
        for _ in range(count):
            fetched(prompt, key, at=now - timedelta(hours=back))
    chart = get_hourly_chart(workspace, now)
    assert [bar.count for bar in chart.bars] == [2, *[0] * 21, 4, 1]
    assert (chart.total, chart.busiest.count, chart.busiest.height) == (7, 4, CHART_HEIGHT)
    assert [bar.height for bar in chart.bars[:2]] == [CHART_HEIGHT / 2, 0]
    page = words_of(look(as_bob))
    assert re.search(r"<title[^>]*>Prompts served per hour</title>", page)
    assert "style=" not in page


def test_what_waits_leads_to_where_it_is_dealt_with(as_bob, workspace, stage):
    assert "Nothing waits for you." in words_of(look(as_bob))
    make_memory(workspace, state="proposed")
    AgentPrompt.unscoped.filter(agent=stage.pilot).update(problem="Not built: no.")
    rows = look(as_bob).context["attention_items"]
    assert [(row.count, row.label) for row in rows] == [(2, "prompts not built"), (1, "memory to approve")]
    for row in rows:
        assert as_bob.get(row.url).status_code == 200


# --- the first steps -----------------------------------------------------------------------------------


def test_the_first_steps_tick_themselves_and_go_when_done(as_alice, workspace, stage):
    def done():
        return {step.label: step.is_done for step in look(as_alice).context.get("steps") or []}

    steps = done()
    assert steps["Make the first agent"]
    assert steps["Let it speak on a channel"]
    assert not steps["Make a key for a bot"]
    assert steps["Invite a second person"]
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    assert done()["Make a key for a bot"]
    fetched(prompt_of(stage.pilot), key)
    assert done() == {}


def test_the_first_steps_can_be_put_away_by_each_person_and_for_one_workspace(as_alice, as_bob):
    assert "First steps" in words_of(look(as_alice))
    answer = as_alice.post("/w/harbour/fleet/steps/dismiss/")
    assert answer.cookies["dr_no_steps"]["path"] == HOME
    assert "First steps" not in words_of(look(as_alice))
    assert "First steps" in words_of(look(as_bob))


def test_a_stranger_finds_nothing(as_mallory, stage):
    prompt = prompt_of(stage.pilot)
    assert as_mallory.get(HOME).status_code == 404
    assert bulk(as_mallory, "rebuild", prompt).status_code == 404
    for path in ("fleet/demo/", "fleet/steps/dismiss/"):
        assert as_mallory.post(f"{HOME}{path}").status_code == 404
