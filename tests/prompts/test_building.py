"""From an edit to a version: built once, numbered without gaps, not built when nothing changed."""

from typing import Any

import pytest

from personas.models import Agent, Memory
from personas.services.memories import revoke_memory
from personas.services.records import archive_record, edit_record
from prompts.models import PRODUCTION, AgentPrompt, BuildCause, PromptLabel, PromptVersion
from prompts.selectors import text_of
from prompts.services.building import NotRebuildable, rebuild_agent, rebuild_agents
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slack(workspace):
    return make_channel(workspace, "deck")


@pytest.fixture
def pilot(workspace, slack) -> Agent:
    soul = make_soul(workspace, text="Be brave.")
    return make_agent(workspace, "pilot", soul=soul, channels=[slack])


def prompt_of(agent: Agent) -> Any:
    return AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest").get(agent=agent)


def versions(agent: Agent) -> list[PromptVersion]:
    return list(
        PromptVersion.objects.in_workspace(agent.workspace_id).filter(prompt__agent=agent).order_by("number")
    )


def test_a_new_agent_has_a_first_version_before_its_maker_hears_back(pilot):
    assert [version.number for version in versions(pilot)] == [1]
    assert "Be brave." in text_of(versions(pilot)[0])
    assert not BuildCause.unscoped.exists()


def test_an_edit_of_a_shared_soul_makes_one_version_with_its_cause(pilot, workspace):
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY, message="Wiser")
    last = versions(pilot)[-1]
    assert (last.number, last.author_label, last.message) == (2, "test", "Wiser")
    assert last.causes == [
        {"kind": "soul", "id": pilot.soul_id, "revision": 2, "by": "test", "message": "Wiser"}
    ]
    assert "Be wise." in text_of(last)
    assert last.previous_hash == versions(pilot)[0].hash


def test_building_again_without_an_edit_makes_no_version(pilot):
    built = rebuild_agent(pilot)
    assert (built.versions, built.unchanged, len(versions(pilot))) == ([], 1, 1)


def test_production_follows_the_latest_of_an_automatic_agent(pilot, workspace):
    make_memory(workspace, "The harbour closes at nine.")
    label = PromptLabel.objects.in_workspace(workspace).get(prompt=prompt_of(pilot), name=PRODUCTION)
    assert label.version == versions(pilot)[-1]
    assert label.version.number == 2


def test_production_of_a_reviewed_agent_stays(workspace, slack):
    agent = make_agent(workspace, "careful", channels=[slack], release_policy="reviewed")
    assert versions(agent)
    assert not PromptLabel.objects.in_workspace(workspace).filter(prompt__agent=agent).exists()


def test_a_revoked_memory_leaves_the_next_version(pilot, workspace):
    memory = make_memory(workspace, "The cook likes tea.")
    assert "likes tea" in text_of(versions(pilot)[-1])
    revoke_memory(Memory.objects.in_workspace(workspace).get(pk=memory.pk), by=BY)
    assert "likes tea" not in text_of(versions(pilot)[-1])


def test_an_archived_agent_is_not_built(pilot):
    archive_record(pilot, by=BY)
    pilot.refresh_from_db()
    with pytest.raises(NotRebuildable):
        rebuild_agent(pilot)
    rebuild_agents(pilot.workspace_id, [pilot.pk])
    assert len(versions(pilot)) == 1
    assert prompt_of(pilot).is_live is False


def test_a_layout_that_is_gone_leaves_what_is_served_and_says_so(pilot):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    rebuild_agents(pilot.workspace_id, [pilot.pk])
    assert len(versions(pilot)) == 1
    assert "no layout “harbour”" in prompt_of(pilot).problem
