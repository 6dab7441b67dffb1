"""The channels and activity tabs of an agent, its header and its tool guidance."""

import pytest
from django.db import transaction
from django.utils import timezone

from personas.records.services import edit_record
from prompts.evidence.erasure.services import erase_record
from prompts.models import PRODUCTION, AgentPrompt, LedgerEntry, PromptLabel
from prompts.publishing.inputs import collect_inputs
from prompts.publishing.inputs.effective_settings import EffectiveSettings
from prompts.publishing.labels.services import move_label, roll_back
from prompts.publishing.settings.services import put_settings
from prompts.studio.agent_pages.activity import get_activity_page
from prompts.studio.agent_pages.cards import list_guidance_lines
from prompts.studio.agent_pages.selectors import (
    build_agent_summary,
    get_production_channels,
    list_channel_statuses,
)
from tests.factories import (
    BY,
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_soul,
    make_task,
)
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
    shared_stage,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]


def set_stage(shared: SharedCast) -> None:
    """Create an agent on two channels; the prompt on the bridge is longer."""
    workspace = shared.workspace
    shared.soul = make_soul(workspace, text="Be brave.")
    shared.deck = make_channel(workspace, "deck")
    bridge = make_channel(workspace, "bridge", formatting="Short lines. " * 20)
    shared.pilot = make_agent(workspace, "pilot", soul=shared.soul, channels=[shared.deck, bridge])


@pytest.fixture
def deck(stage):
    return stage.deck


@pytest.fixture
def soul(stage):
    return stage.soul


@pytest.fixture
def pilot(stage):
    return stage.pilot


def change_soul(soul, text):
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)


def get_prompt(agent, channel) -> AgentPrompt:
    return AgentPrompt.unscoped.get(agent=agent, channel=channel)


def add_ledger_entries(prompt, label="bot:gull", times=1):
    """Insert ledger rows as fetches do."""
    now = timezone.now()
    for number in range(times):
        LedgerEntry(
            workspace_id=prompt.workspace_id,
            reader_label=label,
            prompt=prompt,
            label=PRODUCTION,
            version_id=prompt.latest_id,
            slots={},
            served_digest="0" * 64,
            size=1,
            status=200,
            request_id=f"{label}-{number}",
            at=now,
            seal="0" * 64,
        ).save()


def get_html(client, path):
    response = client.get(f"/w/harbour/agents/pilot/{path}")
    assert response.status_code == 200, path
    return response.content.decode()


# --- the header ----------------------------------------------------------------------------------------


def test_the_header_counts_channels_tokens_and_fetches(pilot, deck):
    statuses = list_channel_statuses(pilot)
    summary = build_agent_summary(pilot, statuses)
    assert [status.channel_slug for status in statuses] == ["deck", "bridge"]
    assert summary.min_tokens is not None
    assert summary.max_tokens is not None
    assert 0 < summary.min_tokens < summary.max_tokens
    assert summary.fetched_at is None
    add_ledger_entries(get_prompt(pilot, deck))
    assert build_agent_summary(pilot, list_channel_statuses(pilot)).fetched_at is not None


def test_another_agents_prompts_on_the_same_channel_are_not_counted(workspace, pilot, deck, soul):
    mate = make_agent(workspace, "mate", soul=soul, channels=[deck])
    add_ledger_entries(get_prompt(mate, deck))
    assert [status.fetched_at for status in list_channel_statuses(pilot)] == [None, None]
    assert len(list_channel_statuses(mate)) == 1


def test_a_channel_without_a_build_is_listed(as_bob, pilot, deck):
    PromptLabel.unscoped.filter(prompt__agent=pilot).delete()
    AgentPrompt.unscoped.filter(agent=pilot).update(is_active=True, latest=None)
    html = get_html(as_bob, "channels/")
    assert html.count("Not built yet") == 2
    assert html.count("Not released") == 2


# --- channels ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_channel_shows_versions_size_bots_and_settings(as_bob, workspace, pilot, deck, soul):
    put_settings(workspace, {"token_budget": 4_000}, expected=0, by=BY)
    fox = make_identity(workspace, "Night fox")
    put_settings(workspace, {"identity": fox, "token_budget": 900}, expected=0, by=BY, channel=deck)
    change_soul(soul, "Be wise.")
    roll_back([get_prompt(pilot, deck)], by=BY, note="Too wise.")
    add_ledger_entries(get_prompt(pilot, deck), times=3)
    html = get_html(as_bob, "channels/")
    first = html[html.index('id="deck"') : html.index('id="bridge"')]
    number = next(
        status.production for status in list_channel_statuses(pilot) if status.channel_slug == "deck"
    )
    assert f"/versions/{number}/" in first
    assert "not released" in first
    assert "Pinned" in first
    assert "/ 900" in first
    assert "bot:gull" in first
    assert "3 times" in first
    assert "Night fox" in first
    assert "prompt-settings/channels/deck/" in first
    second = html[html.index('id="bridge"') :]
    assert "/ 4,000" in second
    assert "prompt-settings/workspace/" in second
    assert "Night fox" not in second


def test_effective_settings_equal_the_settings_of_a_build(workspace, pilot, deck):
    put_settings(workspace, {"mode": "single_turn", "token_budget": 4_000}, expected=0, by=BY)
    put_settings(workspace, {"mode": "agent"}, expected=0, by=BY, agent=pilot)
    put_settings(workspace, {"token_budget": 900}, expected=0, by=BY, channel=deck)
    effective_settings = EffectiveSettings.load(pilot)
    for entry in collect_inputs(workspace, [pilot], at=timezone.now()):
        values = {value.name: value.level for value in effective_settings.list_values(entry.channel.pk)}
        assert values == {name: entry.levels.get(name, values[name]) for name in values}
        assert effective_settings.get_persona(entry.channel.pk)[1] == {
            name: entry.levels[name] for name in ("identity", "soul", "user_profile")
        }
        assert effective_settings.get_token_budget(entry.channel.pk) == entry.token_budget


def test_an_agent_without_channels_shows_a_hint(as_bob, workspace):
    make_agent(workspace, "mute")
    response = as_bob.get("/w/harbour/agents/mute/channels/")
    assert "Bots cannot fetch prompts for this agent until it has a channel" in response.content.decode()


def test_production_channels_follow_the_production_version(workspace, pilot, deck):
    memory = make_memory(workspace, "High water at six.")
    part = ("memory", memory.pk)
    assert get_production_channels(pilot, [part], list_channel_statuses(pilot)) == {part: ["Deck", "Bridge"]}
    roll_back([get_prompt(pilot, deck)], by=BY, note="Not yet.")
    assert get_production_channels(pilot, [part], list_channel_statuses(pilot)) == {part: ["Bridge"]}


# --- activity ------------------------------------------------------------------------------------------


def test_activity_lists_changes_versions_and_label_moves(as_bob, workspace, pilot, deck, soul):
    change_soul(soul, "Be wise.")
    roll_back([get_prompt(pilot, deck)], by=BY, note="Too wise.")
    make_task(workspace, "Paint the boat", agent=pilot)
    html = get_html(as_bob, "activity/")
    assert html.index("rolled back to") < html.index("Soul revision 2") < html.index("Created:")
    assert "Too wise." in html
    assert "/souls/calm/" in html
    assert "Paint the boat" in html


def test_activity_of_other_agents_is_not_listed(as_bob, workspace, pilot):
    mate = make_agent(workspace, "mate", soul=make_soul(workspace, "Wild"))
    make_memory(workspace, "Foreign fact.", agent=mate)
    html = get_html(as_bob, "activity/")
    assert "Foreign fact." not in html
    assert "Wild" not in html
    assert "Mate" not in html


@pytest.mark.slow
def test_activity_can_be_filtered_by_kind(as_bob, pilot, deck, soul):
    change_soul(soul, "Be wise.")
    roll_back([get_prompt(pilot, deck)], by=BY, note="Too wise.")
    for kind in ("change", "version", "label", "release"):
        response = as_bob.get(f"/w/harbour/agents/pilot/activity/?what={kind}")
        kinds = {entry.kind for entry, _ in response.context["rows"]}
        assert kinds == (set() if kind == "release" else {kind})
    assert as_bob.get("/w/harbour/agents/pilot/activity/?what=nonsense&page=x").status_code == 200


@pytest.mark.slow
def test_long_activity_is_paginated(as_bob, workspace, pilot, monkeypatch):
    monkeypatch.setattr("prompts.studio.agent_pages.activity.ENTRIES_PER_PAGE", 8)
    with transaction.atomic():
        for number in range(8):
            make_memory(workspace, f"Fact {number}.", agent=pilot)
    first, second = get_activity_page(pilot), get_activity_page(pilot, number=2)
    assert len(first.entries) == 8
    assert first.has_next
    assert second.has_previous
    assert {entry.at for entry in first.entries}.isdisjoint({entry.at for entry in second.entries})
    assert "Older" in get_html(as_bob, "activity/")
    assert "Newer" in get_html(as_bob, "activity/?page=2")
    assert as_bob.get("/w/harbour/agents/pilot/activity/?page=9999").status_code == 200


@pytest.mark.slow
def test_the_tabs_take_few_queries(as_bob, workspace, pilot, deck, django_assert_max_num_queries):
    make_agent(workspace, "child", parent=pilot, channels=[deck])
    make_task(workspace, agent=pilot)
    add_ledger_entries(get_prompt(pilot, deck), times=3)
    for tab in ("channels/", "activity/"):
        get_html(as_bob, tab)
        with django_assert_max_num_queries(12, info=tab):
            get_html(as_bob, tab)


# --- guidance ------------------------------------------------------------------------------------------


def test_guidance_names_the_tools_that_cause_it():
    lines = list_guidance_lines("opal", {"read_file": [], "shell": ["Ask first."]})
    lines_by_text = {line.text: line for line in lines}
    assert lines_by_text["Ask first."].tools == ["shell"]
    assert lines_by_text["Ask first."].is_own
    layout_line = next(line for line in lines if line.text.startswith("Use the `read_file` tool"))
    assert (sorted(layout_line.tools), layout_line.is_own) == (["read_file", "shell"], False)


def test_guidance_equals_the_lines_of_the_layout():
    assert list_guidance_lines("nova", {"shell": []}) == []
    always = [line for line in list_guidance_lines("pi", {}) if not line.tools]
    assert [line.text for line in always][:1] == ["Be concise in your responses"]


def test_one_edit_on_several_channels_is_one_entry(as_bob, workspace, pilot, deck, soul):
    change_soul(soul, "Be wise.")
    change_soul(soul, "Be wiser.")
    rows = as_bob.get("/w/harbour/agents/pilot/activity/?what=version").context["rows"]
    assert [len(group.entries) for group, _ in rows] == [2, 2, 2]
    html = get_html(as_bob, "activity/?what=version")
    assert html.count("New versions on 2 channels:") == 3
    assert "deck version 3" in " ".join(html.replace("<bdi>", "").replace("</bdi>", "").lower().split())


def test_one_action_that_moves_several_labels_is_one_entry(as_bob, workspace, pilot, deck, soul):
    change_soul(soul, "Be wise.")
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(agent=pilot)
    roll_back(list(prompts), by=BY, note="Too wise.")
    html = get_html(as_bob, "activity/?what=label")
    assert html.count("rolled back on 2 channels:") == 1
    assert html.count("Too wise.") == 1


def test_an_erasure_is_named_as_the_reason_of_a_move(as_bob, workspace, pilot, soul):
    memory = make_memory(workspace, "Ann lives here.", agent=pilot)
    prompt = AgentPrompt.objects.in_workspace(workspace).filter(agent=pilot).select_related("latest")[0]
    assert prompt.latest is not None
    move_label(prompt, "canary", prompt.latest, expected=None, by=BY)
    erase_record(memory, reason="Requested.", by=BY)
    assert "because of an erasure" in get_html(as_bob, "activity/?what=label")
