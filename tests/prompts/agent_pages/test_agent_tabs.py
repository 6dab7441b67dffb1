"""Channels and activity of an agent, and what its header counts."""

import pytest
from django.db import transaction
from django.utils import timezone

from personas.records.services import edit_record
from prompts.agent_pages.activity import get_activity_page
from prompts.agent_pages.cards import list_guidance_lines
from prompts.agent_pages.selectors import build_agent_summary, get_production_channels, list_channel_statuses
from prompts.inputs import collect_inputs
from prompts.inputs.effective_settings import EffectiveSettings
from prompts.labels.services import roll_back
from prompts.models import PRODUCTION, AgentPrompt, LedgerEntry, PromptLabel
from prompts.settings.services import put_settings
from tests.factories import (
    BY,
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_soul,
    make_task,
)
from tests.prompts.module_stage import (  # noqa: F401  # fixtures
    Standing,
    a_copy_of_the_stage,
    alice_logged_in,
    bob_logged_in,
    commits_are_heard,
    standing,
    standing_alice,
    standing_bob,
    standing_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits_are_heard")]


def set_stage(standing: Standing) -> None:  # noqa: F811  # what the fixture of that name is given
    """A pilot on deck and on the bridge, where more is said."""
    workspace = standing.workspace
    standing.soul = make_soul(workspace, text="Be brave.")
    standing.deck = make_channel(workspace, "deck")
    bridge = make_channel(workspace, "bridge", formatting="Short lines. " * 20)
    standing.pilot = make_agent(workspace, "pilot", soul=standing.soul, channels=[standing.deck, bridge])


@pytest.fixture
def deck(stage):
    return stage.deck


@pytest.fixture
def soul(stage):
    return stage.soul


@pytest.fixture
def pilot(stage):
    return stage.pilot


def reword(soul, text):
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)


def prompt_of(agent, channel) -> AgentPrompt:
    return AgentPrompt.unscoped.get(agent=agent, channel=channel)


def fetched(prompt, label="bot:gull", times=1):
    """Rows of the ledger, as a fetch leaves them."""
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


def page(client, path):
    answer = client.get(f"/w/harbour/agents/pilot/{path}")
    assert answer.status_code == 200, path
    return answer.content.decode()


# --- the header ----------------------------------------------------------------------------------------


def test_the_header_counts_channels_tokens_and_fetches(pilot, deck):
    lines = list_channel_statuses(pilot)
    card = build_agent_summary(pilot, lines)
    assert [line.channel_slug for line in lines] == ["deck", "bridge"]
    assert card.min_tokens is not None
    assert card.max_tokens is not None
    assert 0 < card.min_tokens < card.max_tokens
    assert card.fetched_at is None
    fetched(prompt_of(pilot, deck))
    assert build_agent_summary(pilot, list_channel_statuses(pilot)).fetched_at is not None


def test_another_agents_prompts_on_the_same_channel_are_not_counted(workspace, pilot, deck, soul):
    mate = make_agent(workspace, "mate", soul=soul, channels=[deck])
    fetched(prompt_of(mate, deck))
    assert [line.fetched_at for line in list_channel_statuses(pilot)] == [None, None]
    assert len(list_channel_statuses(mate)) == 1


def test_a_channel_that_nothing_was_built_for_is_shown_all_the_same(as_bob, pilot, deck):
    PromptLabel.unscoped.filter(prompt__agent=pilot).delete()
    AgentPrompt.unscoped.filter(agent=pilot).update(is_live=True, latest=None)
    said = page(as_bob, "channels/")
    assert said.count("Not built yet") == 2
    assert said.count("Nothing released") == 2


# --- channels ------------------------------------------------------------------------------------------


def test_a_channel_tells_versions_size_bots_and_settings(as_bob, workspace, pilot, deck, soul):
    put_settings(workspace, {"token_budget": 4_000}, expected=0, by=BY)
    fox = make_identity(workspace, "Fox")
    put_settings(workspace, {"identity": fox, "token_budget": 900}, expected=0, by=BY, channel=deck)
    reword(soul, "Be wise.")
    roll_back([prompt_of(pilot, deck)], by=BY, note="Too wise.")
    fetched(prompt_of(pilot, deck), times=3)
    said = page(as_bob, "channels/")
    first = said[said.index('id="deck"') : said.index('id="bridge"')]
    number = next(line.production for line in list_channel_statuses(pilot) if line.channel_slug == "deck")
    assert f"/versions/{number}/" in first
    assert "not released" in first
    assert "Held" in first
    assert "/ 900" in first
    assert "bot:gull" in first
    assert "3 times" in first
    assert "Fox" in first
    assert "prompt-settings/channels/deck/" in first
    second = said[said.index('id="bridge"') :]
    assert "/ 4,000" in second
    assert "prompt-settings/workspace/" in second
    assert "Fox" not in second


def test_what_is_decided_agrees_with_what_is_built(workspace, pilot, deck):
    put_settings(workspace, {"mode": "single_turn", "token_budget": 4_000}, expected=0, by=BY)
    put_settings(workspace, {"mode": "agent"}, expected=0, by=BY, agent=pilot)
    put_settings(workspace, {"token_budget": 900}, expected=0, by=BY, channel=deck)
    deciding = EffectiveSettings.load(pilot)
    for one in collect_inputs(workspace, [pilot], at=timezone.now()):
        values = {value.name: value.level for value in deciding.list_values(one.channel.pk)}
        assert values == {name: one.levels.get(name, values[name]) for name in values}
        assert deciding.get_persona(one.channel.pk)[1] == {
            name: one.levels[name] for name in ("identity", "soul", "user_profile")
        }
        assert deciding.get_token_budget(one.channel.pk) == one.token_budget


def test_an_agent_without_a_channel_is_told_what_follows(as_bob, workspace):
    make_agent(workspace, "mute")
    answer = as_bob.get("/w/harbour/agents/mute/channels/")
    assert "Bots cannot fetch this agent yet" in answer.content.decode()


def test_production_parts_follow_the_version_that_bots_get(workspace, pilot, deck):
    memory = make_memory(workspace, "High water at six.")
    part = ("memory", memory.pk)
    assert get_production_channels(pilot, [part], list_channel_statuses(pilot)) == {part: ["Deck", "Bridge"]}
    roll_back([prompt_of(pilot, deck)], by=BY, note="Not yet.")
    assert get_production_channels(pilot, [part], list_channel_statuses(pilot)) == {part: ["Bridge"]}


# --- activity ------------------------------------------------------------------------------------------


def test_activity_tells_changes_versions_and_label_moves(as_bob, workspace, pilot, deck, soul):
    reword(soul, "Be wise.")
    roll_back([prompt_of(pilot, deck)], by=BY, note="Too wise.")
    make_task(workspace, "Paint the boat", agent=pilot)
    said = page(as_bob, "activity/")
    assert said.index("rolled back to") < said.index("Soul revision 2") < said.index("Created:")
    assert "Too wise." in said
    assert "/souls/calm/" in said
    assert "Paint the boat" in said


def test_activity_of_others_stays_out(as_bob, workspace, pilot):
    mate = make_agent(workspace, "mate", soul=make_soul(workspace, "Wild"))
    make_memory(workspace, "Foreign fact.", agent=mate)
    said = page(as_bob, "activity/")
    assert "Foreign fact." not in said
    assert "Wild" not in said
    assert "Mate" not in said


def test_a_kind_is_chosen_in_the_address(as_bob, pilot, deck, soul):
    reword(soul, "Be wise.")
    roll_back([prompt_of(pilot, deck)], by=BY, note="Too wise.")
    for what in ("change", "version", "label", "release"):
        answer = as_bob.get(f"/w/harbour/agents/pilot/activity/?what={what}")
        kinds = {one.kind for one, _ in answer.context["rows"]}
        assert kinds == (set() if what == "release" else {what})
    assert as_bob.get("/w/harbour/agents/pilot/activity/?what=nonsense&page=x").status_code == 200


def test_long_activity_comes_in_pages(as_bob, workspace, pilot, monkeypatch):
    monkeypatch.setattr("prompts.agent_pages.activity.ENTRIES_PER_PAGE", 8)
    with transaction.atomic():
        for number in range(8):
            make_memory(workspace, f"Fact {number}.", agent=pilot)
    first, second = get_activity_page(pilot), get_activity_page(pilot, number=2)
    assert len(first.entries) == 8
    assert first.has_next
    assert second.has_previous
    assert {one.at for one in first.entries}.isdisjoint({one.at for one in second.entries})
    assert "Older" in page(as_bob, "activity/")
    assert "Newer" in page(as_bob, "activity/?page=2")
    assert as_bob.get("/w/harbour/agents/pilot/activity/?page=9999").status_code == 200


def test_the_tabs_ask_few_questions(as_bob, workspace, pilot, deck, django_assert_max_num_queries):
    make_agent(workspace, "child", parent=pilot, channels=[deck])
    make_task(workspace, agent=pilot)
    fetched(prompt_of(pilot, deck), times=3)
    for tab in ("channels/", "activity/"):
        page(as_bob, tab)
        with django_assert_max_num_queries(12, info=tab):
            page(as_bob, tab)


# --- guidance ------------------------------------------------------------------------------------------


def test_guidance_names_the_tools_that_call_for_it():
    lines = list_guidance_lines("opal", {"read_file": [], "shell": ["Ask first."]})
    by_words = {line.text: line for line in lines}
    assert by_words["Ask first."].tools == ["shell"]
    assert by_words["Ask first."].is_own
    reading = next(line for line in lines if line.text.startswith("Use the `read_file` tool"))
    assert (sorted(reading.tools), reading.is_own) == (["read_file", "shell"], False)


def test_guidance_is_what_the_layout_would_say():
    assert list_guidance_lines("nova", {"shell": []}) == []
    always = [line for line in list_guidance_lines("pi", {}) if not line.tools]
    assert [line.text for line in always][:1] == ["Be concise in your responses"]
