"""Prompt settings on all levels: workspace, agent, channel, and one agent on one channel."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from personas.contents.services import SaltedDigests
from personas.models import Agent, Channel
from prompts.models import AgentPrompt, PromptSettings
from prompts.publishing.builds.compiler import compile_prompt
from prompts.publishing.inputs import CollectedInputs, DraftRecord, InputCollector, LoadedRows, collect_inputs
from prompts.publishing.inputs.effective_settings import EffectiveSettings
from prompts.publishing.preview.drafts import list_affected_agents
from prompts.publishing.preview.impact import compute_impact
from prompts.publishing.settings.selectors import build_effective_budget
from prompts.publishing.settings.services import put_settings
from tests.api_client import Api
from tests.factories import BY, make_channel, make_identity
from tests.personas.api.prompts_stage import Deck, good, keys_of_alice, problem  # noqa: F401  # a fixture
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)

pytestmark = pytest.mark.django_db
PROMPT = "prompt-settings/agents/pilot/channels/deck"


def get_pilot(deck: Deck) -> Agent:
    return Agent.objects.in_workspace(deck.workspace).get(slug="pilot")


def get_channel(deck: Deck) -> Channel:
    return Channel.objects.in_workspace(deck.workspace).get(slug="deck")


def put(deck: Deck, *levels: str, **values: Any) -> PromptSettings:
    level: dict[str, Any] = {"agent": get_pilot(deck)} if "agent" in levels else {}
    level |= {"channel": get_channel(deck)} if "channel" in levels else {}
    return put_settings(deck.workspace, values, expected=0, by=BY, **level)


def collect(deck: Deck, agent: str = "pilot") -> CollectedInputs:
    row = Agent.objects.in_workspace(deck.workspace).get(slug=agent)
    [collected] = collect_inputs(deck.workspace, [row], at=row.updated_at)
    return collected


def test_the_nearest_level_applies(deck: Deck) -> None:
    levels = [(), ("agent",), ("channel",), ("agent", "channel")]
    for number, level in enumerate(levels):
        put(deck, *level, per_file=100 + number, mission=f"Mission {number}")
        collected = collect(deck)
        assert collected.inputs.limits.per_file == 100 + number
        assert collected.inputs.mission is not None
        assert collected.inputs.mission.text == f"Mission {number}"
    assert collected.levels["per_file"] == "prompt"
    other = collect(deck, "cook")
    assert (other.inputs.limits.per_file, other.levels["per_file"]) == (102, "channel")


def test_a_prompt_may_have_a_persona_of_its_own(deck: Deck) -> None:
    row = make_identity(deck.workspace, "Owl", display_name="Owl")
    put(deck, "channel", identity=make_identity(deck.workspace, "Fox", display_name="Fox"))
    put(deck, "agent", "channel", identity=row)
    collected = collect(deck)
    assert collected.inputs.identity is not None
    assert (collected.inputs.identity.name, collected.levels["identity"]) == ("Owl", "prompt")
    other = collect(deck, "cook").inputs.identity
    assert other is not None
    assert other.name == "Fox"


def test_a_level_has_one_set_of_settings(deck: Deck) -> None:
    for level in ({}, {"agent": get_pilot(deck)}, {"channel": get_channel(deck)}):
        PromptSettings(workspace=deck.workspace, **level).save()
        with pytest.raises(IntegrityError), transaction.atomic():
            PromptSettings(workspace=deck.workspace, **level).save()
    both = {"agent": get_pilot(deck), "channel": get_channel(deck)}
    PromptSettings(workspace=deck.workspace, **both).save()
    with pytest.raises(IntegrityError), transaction.atomic():
        PromptSettings(workspace=deck.workspace, **both).save()


def test_rest_reads_and_writes_the_settings_of_one_prompt(admin: Api, deck: Deck) -> None:
    empty = admin.get(PROMPT)
    assert (good(empty)["level"], good(empty)["revision"], empty["ETag"][:2]) == ("prompt", 0, '"0')
    answer = good(admin.call("PUT", PROMPT, {"mission": "Land.", "soul": deck.soul.slug}, If_Match='"0"'))
    assert (answer["agent"], answer["channel"], answer["mission"]) == ("pilot", "deck", "Land.")
    assert answer["soul"] == deck.soul.slug
    assert good(admin.get("prompt-settings/agents/pilot"))["revision"] == 0
    assert good(admin.get("prompt-settings/channels/deck"))["revision"] == 0
    problem(admin.call("PUT", PROMPT, {}, If_Match='"0"'), 412, "precondition_failed")
    for path in ("agents/nobody/channels/deck", "agents/pilot/channels/nowhere"):
        problem(admin.get(f"prompt-settings/{path}"), 404, "not_found")


def test_scopes_of_a_key_apply_to_agent_and_channel(scoped: Any, deck: Deck) -> None:
    make_channel(deck.workspace, "bridge")
    for scopes in ({"agents": ["cook"]}, {"channels": ["bridge"]}):
        problem(scoped(**scopes).get(PROMPT), 404, "not_found")
    good(scoped(agents=["pilot"], channels=["deck"]).get(PROMPT))


@pytest.mark.slow
def test_a_level_that_was_cleared_is_not_listed(admin: Api, as_bob: Any, deck: Deck) -> None:
    page = f"/w/{deck.workspace.slug}/prompt-settings/"
    good(admin.call("PUT", PROMPT, {"hidden": ["email"]}, If_Match='"0"'))
    assert [row["level"] for row in good(admin.get("prompt-settings"))["items"]] == ["prompt"]
    assert "Pilot · Deck" in as_bob.get(page).content.decode()
    good(admin.call("PUT", PROMPT, {"hidden": []}, If_Match='"1"'))
    assert good(admin.get("prompt-settings"))["items"] == []
    assert "Pilot · Deck" not in as_bob.get(page).content.decode()
    assert good(admin.get(PROMPT))["hidden"] is None


@pytest.mark.slow
def test_the_page_of_one_prompt_saves_and_offers_a_persona(as_bob: Any, deck: Deck) -> None:
    path = f"/w/{deck.workspace.slug}/prompt-settings/agents/pilot/channels/deck/"
    html = as_bob.get(path).content.decode()
    assert "Pilot · Deck" in html
    assert 'name="identity"' in html
    values = {"token_budget": "700", "section_limits": "memories: 2000\r\nskills:90", "omit_reference": "no"}
    assert as_bob.post(path, values).status_code == 302
    row = PromptSettings.objects.in_workspace(deck.workspace).get()
    assert (row.level, row.token_budget, row.omit_reference) == ("prompt", 700, False)
    assert row.section_limits == {"memories": 2000, "skills": 90}
    html = as_bob.get(path).content.decode()
    assert "memories: 2000\nskills: 90</textarea>" in html
    channels = as_bob.get(f"/w/{deck.workspace.slug}/agents/pilot/channels/").content.decode()
    assert f'href="{path}">from this prompt</a>' in channels
    assert 'name="identity"' not in as_bob.get(path.replace("channels/deck/", "")).content.decode()


def test_the_budget_of_a_prompt_is_the_nearest(deck: Deck) -> None:
    def read(agent: str) -> int | None:
        rows = AgentPrompt.objects.in_workspace(deck.workspace).filter(agent__slug=agent)
        value: int | None = rows.annotate(budget=build_effective_budget(deck.workspace)).get().budget
        return value

    put(deck, "agent", token_budget=100)
    put(deck, "agent", "channel", token_budget=300)
    assert (read("pilot"), read("cook")) == (300, None)
    put(deck, "channel", token_budget=200)
    assert (read("pilot"), read("cook")) == (300, 200)
    assert EffectiveSettings.load(get_pilot(deck)).get_token_budget(get_channel(deck).pk) == 300


def test_effective_values_name_the_level_and_the_settings_of_others_do_not_count(deck: Deck) -> None:
    put(deck, "agent", "channel", signature="(a :int)", list_sample=7)
    cook = Agent.objects.in_workspace(deck.workspace).get(slug="cook")
    channel = get_channel(deck).pk
    values = {value.name: value for value in EffectiveSettings.load(get_pilot(deck)).list_values(channel)}
    assert (values["signature"].text, values["signature"].level) == ("(a :int)", "prompt")
    assert (values["list_sample"].text, values["string_truncate"].text) == ("7", "500")
    others = {value.name: value for value in EffectiveSettings.load(cook).list_values(channel)}
    assert others["signature"].level == "built in"


def test_a_draft_of_a_level_without_settings_is_previewed(deck: Deck) -> None:
    both = {"agent": get_pilot(deck), "channel": get_channel(deck)}
    settings = PromptSettings(workspace=deck.workspace, mission="Land on the moon.", **both)
    draft = DraftRecord(settings)
    agents = list(list_affected_agents(settings, draft))
    assert agents == [get_pilot(deck).pk]
    impact = compute_impact(deck.workspace, draft, agents)
    assert [(str(one.agent), one.channel) for one in impact.affected] == [("Pilot", "Deck")]
    assert [change.section for change in impact.groups[0].changes] == ["mission"]


def test_a_draft_replaces_the_stored_settings_of_a_prompt(deck: Deck) -> None:
    row = put(deck, "agent", "channel", mission="Land.")
    row.mission, row.revision = "Start.", 2
    collector = InputCollector(
        LoadedRows(deck.workspace, [get_pilot(deck)]), row.updated_at, DraftRecord(row)
    )
    [collected] = collector.collect_all()
    assert collected.inputs.mission is not None
    assert (collected.inputs.mission.text, collected.inputs.mission.origin.revision) == ("Start.", 2)


def test_the_digest_of_settings_covers_mission_and_data(deck: Deck) -> None:
    row = put(deck, "agent", "channel", mission="Land.", sample_data='{"a": 1}')
    key = f"prompt_settings:{row.pk}@1"
    first = get_part_digest(deck, key)
    PromptSettings.objects.in_workspace(deck.workspace).update(sample_data='{"a": 2}')
    second = get_part_digest(deck, key)
    PromptSettings.objects.in_workspace(deck.workspace).update(mission="Start.")
    third = get_part_digest(deck, key)
    assert len({first, second, third}) == 3
    assert get_part_digest(deck, key) == third


def get_part_digest(deck: Deck, key: str) -> str:
    build, digests = compile_prompt(collect(deck)), SaltedDigests(deck.workspace)
    digests.store(build.erasable_contents)
    return build.get_part_digests(digests.by_plain)[key]
