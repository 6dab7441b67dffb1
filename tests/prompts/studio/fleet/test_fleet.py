"""The fleet page: matrix, bot activity, attention items and setup steps."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from personas.api_keys.services import create_key
from personas.models import Agent
from personas.records.services import archive_record
from prompts.models import AgentPrompt, BuildCause
from prompts.publishing.labels.services import roll_back
from prompts.publishing.settings.services import put_settings
from prompts.studio.fleet.bot_activity import CHART_HEIGHT, get_bot_activity, get_hourly_chart
from tests.factories import BY, make_agent, make_memory
from tests.prompts.studio.fleet.fleet_pages import (
    HOME,
    find_cell,
    get_agent_names,
    get_fleet_page,
    get_html,
    list_agent_names,
    list_flag_labels,
    post_bulk_action,
)
from tests.prompts.studio.fleet.fleet_stage import (
    add_ledger_entry,
    change_soul,
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

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


set_stage = make_fleet


# --- the matrix ----------------------------------------------------------------------------------------


def test_a_cell_shows_the_production_version(as_bob, stage):
    response = get_fleet_page(as_bob)
    cell = find_cell(response, "pilot")
    latest = get_prompt(stage.pilot).latest
    assert latest is not None
    assert (cell.number, cell.tokens, cell.flags, cell.bots) == (1, latest.tokens, [], 0)
    assert as_bob.get(cell.url).status_code == 200
    assert find_cell(response, "careful", "bridge") is None
    assert list_flag_labels(response, "careful") == ["Not released"]
    assert "Not on this channel" in get_html(response)
    assert "nova" in get_html(response)


def test_problems_are_shown_as_flags(as_bob, by_alice, workspace, stage):
    pilot = stage.pilot
    change_soul(stage.soul, "Be wise.", pilot, stage.careful)
    roll_back([get_prompt(pilot)], by=by_alice, note="Too wise.")
    response = get_fleet_page(as_bob)
    assert list_flag_labels(response, "pilot") == ["Pinned", "1 ahead"]
    assert list_flag_labels(response, "pilot", "bridge") == []
    put_settings(workspace, {"token_budget": 10}, expected=0, by=BY)
    assert "Over budget" in list_flag_labels(get_fleet_page(as_bob), "pilot", "bridge")
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    rebuild(pilot, stage.careful)
    response = get_fleet_page(as_bob)
    assert list_flag_labels(response, "pilot")[0] == "Not built"
    assert "The layout “harbour” no longer exists." in get_html(response)
    BuildCause(workspace=workspace, agent=pilot, cause={}).save()
    response = get_fleet_page(as_bob)
    assert "0 of 2" in get_html(response)
    assert list_flag_labels(response, "pilot", "bridge")[-1] == "Rebuilding"


def test_the_most_specific_budget_is_effective(as_bob, workspace, stage):
    put_settings(workspace, {"token_budget": 900_000}, expected=0, by=BY)
    put_settings(workspace, {"token_budget": 800_000}, agent=stage.pilot, expected=0, by=BY)
    response = get_fleet_page(as_bob)
    assert (find_cell(response, "careful").budget, find_cell(response, "pilot").budget) == (900_000, 800_000)
    put_settings(workspace, {"token_budget": 700_000}, channel=stage.channels[0], expected=0, by=BY)
    response = get_fleet_page(as_bob)
    assert (find_cell(response, "pilot").budget, find_cell(response, "pilot", "bridge").budget) == (
        700_000,
        800_000,
    )


def test_each_state_filter_selects_its_prompts(as_bob, workspace, stage):
    pilot, careful = stage.pilot, stage.careful
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    add_ledger_entry(get_prompt(pilot), key)
    change_soul(stage.soul, "Be wise.", pilot)
    roll_back([get_prompt(pilot, "bridge")], by=BY, note="Too wise.")
    AgentPrompt.unscoped.filter(agent=careful).update(problem="Not built: no.")
    put_settings(workspace, {"token_budget": 1}, agent=careful, expected=0, by=BY)
    states = ("ahead", "problems", "over", "stale", "held", "nonsense")
    responses = {state: get_fleet_page(as_bob, f"?state={state}") for state in states}
    both = ["Careful", "Pilot"]
    assert {state: list_agent_names(response) for state, response in responses.items()} == {
        "ahead": both,
        "problems": ["Careful"],
        "over": ["Careful"],
        "stale": ["Pilot"],
        "held": ["Pilot"],
        "nonsense": both,
    }
    assert not find_cell(responses["held"], "pilot", "deck").is_match
    assert find_cell(responses["held"], "pilot", "bridge").is_match


def test_filters_and_sorting_come_from_the_query_string(as_bob, stage):
    assert get_agent_names(as_bob, "?q=CARE") == ["Careful"]
    assert get_agent_names(as_bob, "?layout=nova") == ["Careful"]
    response = get_fleet_page(as_bob, "?channel=bridge")
    assert list_agent_names(response) == ["Pilot"]
    assert [channel.slug for channel in response.context["columns"]] == ["bridge"]
    assert get_agent_names(as_bob, "?channel=bridge&state=held") == []
    assert get_agent_names(as_bob, "?q=%00nobody") == []
    change_soul(stage.soul, "Be wise.", stage.pilot)
    assert get_agent_names(as_bob, "?sort=changed") == ["Pilot", "Careful"]
    assert get_agent_names(as_bob, "?sort=tokens")[0] == "Pilot"
    AgentPrompt.unscoped.filter(agent=stage.pilot).update(problem="Not built: no.")
    assert get_agent_names(as_bob, "?sort=problems") == ["Pilot", "Careful"]


def test_an_agent_without_channels_is_marked_and_an_archived_one_is_hidden(as_bob, workspace, stage):
    quiet = make_agent(workspace, "quiet")
    rebuild(quiet)
    archive_record(stage.careful, by=BY)
    response = get_fleet_page(as_bob)
    assert "No channels yet." in get_html(response)
    assert list_agent_names(response) == ["Pilot", "Quiet"]


# --- bots and counts -----------------------------------------------------------------------------------


def test_recent_bots_of_an_hour_and_outdated_bots_of_a_day_are_counted(as_bob, workspace, stage):
    pilot = stage.pilot
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    other, _ = create_key(workspace, "Kiosk", {}, by=BY)
    deck, bridge, now = get_prompt(pilot), get_prompt(pilot, "bridge"), timezone.now()
    for _ in range(3):
        add_ledger_entry(deck, key)
    add_ledger_entry(deck, other, label="latest")
    add_ledger_entry(bridge, other, at=now - timedelta(hours=3))
    add_ledger_entry(bridge, other, at=now - timedelta(hours=30))
    add_ledger_entry(bridge, other, at=now - timedelta(hours=2), label="production@2020-01-01", version_id=0)
    activity = get_bot_activity(workspace)
    assert (activity.recent, activity.outdated) == ({deck.pk: 2}, {})
    change_soul(stage.soul, "Be wise.", pilot)
    activity = get_bot_activity(workspace)
    assert (activity.outdated, activity.outdated_count) == ({deck.pk: 2, bridge.pk: 1}, 2)
    add_ledger_entry(get_prompt(pilot), key)
    assert get_bot_activity(workspace).outdated == {deck.pk: 1, bridge.pk: 1}
    response = get_fleet_page(as_bob)
    assert "1 outdated bot" in list_flag_labels(response, "pilot")
    assert find_cell(response, "pilot").bots == 2
    other.revoked_at = now
    other.save()
    assert get_bot_activity(workspace).outdated == {}


def test_bots_of_another_workspace_are_not_counted(workspace, elsewhere, stage):
    key, _ = create_key(elsewhere, "Spy", {}, by=BY)
    add_ledger_entry(get_prompt(stage.pilot), key, workspace_id=elsewhere.pk)
    assert get_bot_activity(workspace).recent == {}
    assert get_hourly_chart(workspace).total == 0


def test_served_prompts_are_charted_by_hour(as_bob, workspace, stage):
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    prompt, now = get_prompt(stage.pilot), timezone.now().replace(minute=30)
    for hours_ago, count in ((0, 1), (1, 4), (23, 2), (24, 7)):
        for _ in range(count):
            add_ledger_entry(prompt, key, at=now - timedelta(hours=hours_ago))
    chart = get_hourly_chart(workspace, now)
    assert [bar.count for bar in chart.bars] == [2, *[0] * 21, 4, 1]
    assert (chart.total, chart.busiest.count, chart.busiest.height) == (7, 4, CHART_HEIGHT)
    assert [bar.height for bar in chart.bars[:2]] == [CHART_HEIGHT / 2, 0]
    page = get_html(get_fleet_page(as_bob))
    assert re.search(r"<title[^>]*>Prompts served per hour</title>", page)
    assert "style=" not in page


def test_attention_items_link_to_their_pages(as_bob, workspace, stage):
    assert "Nothing needs attention." in get_html(get_fleet_page(as_bob))
    make_memory(workspace, status="proposed")
    AgentPrompt.unscoped.filter(agent=stage.pilot).update(problem="Not built: no.")
    rows = get_fleet_page(as_bob).context["attention_items"]
    assert [(row.count, row.label) for row in rows] == [(2, "prompts not built"), (1, "memory to approve")]
    for row in rows:
        assert as_bob.get(row.url).status_code == 200


# --- setup steps ---------------------------------------------------------------------------------------


def test_setup_steps_are_checked_automatically_and_hidden_when_complete(as_alice, workspace, stage):
    def get_steps():
        return {step.label: step.is_done for step in get_fleet_page(as_alice).context.get("steps") or []}

    steps = get_steps()
    assert steps["Create your first agent"]
    assert steps["Add a channel"]
    assert not steps["Create an API key"]
    assert steps["Invite a teammate"]
    key, _ = create_key(workspace, "Reception", {}, by=BY)
    assert get_steps()["Create an API key"]
    add_ledger_entry(get_prompt(stage.pilot), key)
    assert get_steps() == {}


def test_setup_steps_can_be_dismissed_per_member_and_workspace(as_alice, as_bob):
    assert "First steps" in get_html(get_fleet_page(as_alice))
    response = as_alice.post("/w/harbour/fleet/steps/dismiss/")
    assert response.cookies["dr_no_steps"]["path"] == HOME
    assert "First steps" not in get_html(get_fleet_page(as_alice))
    assert "First steps" in get_html(get_fleet_page(as_bob))


def test_outsiders_get_404(as_mallory, stage):
    prompt = get_prompt(stage.pilot)
    assert as_mallory.get(HOME).status_code == 404
    assert post_bulk_action(as_mallory, "rebuild", prompt).status_code == 404
    for path in ("fleet/demo/", "fleet/steps/dismiss/"):
        assert as_mallory.post(f"{HOME}{path}").status_code == 404
