"""Impact of an unsaved edit: it matches the later build, and computing it writes nothing."""

from typing import NamedTuple

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.models import Agent, Channel, Memory, Soul
from personas.records.services import edit_record
from prompts.models import AgentPrompt, PromptSettings
from prompts.publishing.preview.drafts import build_draft, list_affected_agents
from prompts.publishing.preview.impact import compute_impact
from prompts.publishing.versions.diff import count_common_prefix
from tests.factories import BY, make_agent, make_channel, make_skill, make_soul
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
    """Three agents of one soul on one channel."""

    deck: Channel
    soul: Soul
    crew: list[Agent]


def set_stage(shared: SharedCast) -> Ship:
    workspace = shared.workspace
    deck, soul = make_channel(workspace, "deck"), make_soul(workspace, text="Be brave.")
    crew = [make_agent(workspace, f"mate-{at}", soul=soul, channels=[deck]) for at in range(3)]
    return Ship(deck, soul, crew)


@pytest.fixture
def deck(props: Ship) -> Channel:
    return props.deck


@pytest.fixture
def soul(props: Ship) -> Soul:
    return props.soul


@pytest.fixture
def crew(props: Ship) -> list[Agent]:
    return props.crew


def compute_edit_impact(record, **values):
    draft = build_draft(record, values)
    return compute_impact(record.workspace_id, draft, list_affected_agents(record, draft))


def test_a_shared_soul_changes_every_prompt_that_has_it_in_one_way(crew, soul):
    impact = compute_edit_impact(soul, text="Be wise and brave.")
    assert (len(impact.affected), len(impact.agents), len(impact.groups)) == (3, 3, 1)
    assert [change.section for change in impact.groups[0].changes] == ["soul"]
    assert impact.token_delta == 3 * 2
    assert impact.invalidated_cache_prefixes == 3
    assert "Be wise and brave." in "".join(line.text for line in impact.groups[0].changes[0].lines)


def test_asking_writes_nothing(crew, soul):
    with CaptureQueriesContext(connection) as queries:
        compute_edit_impact(soul, text="Be wise.")
    assert not [q["sql"] for q in queries if q["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert soul.text == "Be brave."


def test_asking_takes_the_same_number_of_queries_for_many(workspace, deck, soul, crew):
    with CaptureQueriesContext(connection) as few:
        compute_edit_impact(soul, text="Be wise.")
    for at in range(2):
        make_agent(workspace, f"more-{at}", soul=soul, channels=[deck])
    with CaptureQueriesContext(connection) as many:
        compute_edit_impact(soul, text="Be wise.")
    assert len(many) == len(few)


def test_the_predicted_impact_matches_the_build(crew, soul):
    impact = compute_edit_impact(soul, text="Be wise.")
    promised = {one.prompt.pk: one.tokens_after for one in impact.affected}
    edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    rows = AgentPrompt.objects.in_workspace(soul.workspace_id).select_related("latest")
    assert {row.pk: row.latest.tokens for row in rows if row.latest} == promised


def test_a_new_memory_and_a_skill_for_all_are_counted(workspace, crew):
    memory = Memory(workspace=workspace, text="The harbour closes at nine.")
    assert len(compute_edit_impact(memory, text=memory.text).affected) == 3
    skill = make_skill(workspace, "splice-rope", agents=[])
    assert len(compute_edit_impact(skill, for_all_agents=True).affected) == 3


def test_an_agents_tools_and_channels_are_drafted_too(workspace, crew, deck):
    other = make_channel(workspace, "bridge")
    impact = compute_edit_impact(crew[0], channels=[other], tools=[])
    assert [str(channel) for _, channel in impact.new] == ["Bridge"]
    assert [row.channel_id for row in impact.gone] == [deck.pk]


def test_a_budget_that_would_be_passed_is_named(workspace, crew, soul):
    settings = PromptSettings(workspace=workspace, token_budget=1)
    settings.save()
    assert len(compute_edit_impact(soul, text="Be wise and brave.").over_budget) == 3


@pytest.mark.parametrize(
    ("one", "other", "length"), [("", "", 0), ("ab", "ab", 2), ("abc", "abd", 2), ("x", "y", 0)]
)
def test_the_common_beginning_is_found(one, other, length):
    assert count_common_prefix(one, other) == length
