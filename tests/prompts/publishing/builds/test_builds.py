"""Builds: an edit adds one version, numbered without gaps; no change adds none."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from personas.memories.services import revoke_memory
from personas.models import Agent, Channel, Memory
from personas.records.services import archive_record, edit_record
from prompts.models import PRODUCTION, AgentPrompt, BuildCause, PromptLabel, PromptVersion
from prompts.publishing.builds import services as builds_services
from prompts.publishing.builds.compiler import compile_prompt
from prompts.publishing.builds.publish import publish_versions
from prompts.publishing.builds.services import NotRebuildable, rebuild_agent, rebuild_agents
from prompts.publishing.versions.selectors import get_version_text
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul
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


def set_stage(shared: SharedCast) -> Agent:
    workspace = shared.workspace
    soul, deck = make_soul(workspace, text="Be brave."), make_channel(workspace, "deck")
    return make_agent(workspace, "pilot", soul=soul, channels=[deck])


@pytest.fixture
def pilot(props: Agent) -> Agent:
    return props


@pytest.fixture
def slack(pilot) -> Channel:
    return Channel.objects.in_workspace(pilot.workspace).get(slug="deck")


def prompt_of(agent: Agent) -> Any:
    return AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest").get(agent=agent)


def versions(agent: Agent) -> list[PromptVersion]:
    return list(
        PromptVersion.objects.in_workspace(agent.workspace_id).filter(prompt__agent=agent).order_by("number")
    )


def test_a_new_agent_has_a_first_version_when_the_request_ends(pilot):
    assert [version.number for version in versions(pilot)] == [1]
    assert "Be brave." in get_version_text(versions(pilot)[0])
    assert not BuildCause.unscoped.exists()


def test_an_edit_of_a_shared_soul_makes_one_version_with_its_cause(pilot, workspace):
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY, message="Wiser")
    last = versions(pilot)[-1]
    assert (last.number, last.author_label, last.message) == (2, "test", "Wiser")
    assert last.causes == [
        {"kind": "soul", "id": pilot.soul_id, "revision": 2, "by": "test", "message": "Wiser"}
    ]
    assert "Be wise." in get_version_text(last)
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
    assert "likes tea" in get_version_text(versions(pilot)[-1])
    revoke_memory(Memory.objects.in_workspace(workspace).get(pk=memory.pk), by=BY)
    assert "likes tea" not in get_version_text(versions(pilot)[-1])


def test_an_archived_agent_is_not_built(pilot):
    archive_record(pilot, by=BY)
    pilot.refresh_from_db()
    with pytest.raises(NotRebuildable):
        rebuild_agent(pilot)
    rebuild_agents(pilot.workspace_id, [pilot.pk])
    assert len(versions(pilot)) == 1
    assert prompt_of(pilot).is_active is False


def test_a_missing_layout_keeps_the_served_version_and_is_reported(pilot):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    rebuild_agents(pilot.workspace_id, [pilot.pk])
    assert len(versions(pilot)) == 1
    assert "layout “harbour” no longer exists" in prompt_of(pilot).problem


def test_one_that_cannot_be_compiled_does_not_hold_up_the_others(pilot, workspace, slack, monkeypatch):
    other = make_agent(workspace, "cook", soul=pilot.soul, channels=[slack])

    def broken(collected: Any, digests: Any) -> Any:
        if collected.agent.pk == other.pk:
            raise ZeroDivisionError
        return compile_prompt(collected, digests)

    monkeypatch.setattr(builds_services, "compile_prompt", broken)
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY)
    assert (len(versions(pilot)), len(versions(other))) == (2, 1)
    assert "ZeroDivisionError" in prompt_of(other).problem


@pytest.fixture
def refusing(monkeypatch, pilot, workspace, slack) -> Agent:
    """An agent whose versions the database rejects, alone and in a batch."""
    bad = make_agent(workspace, "cook", soul=pilot.soul, channels=[slack])

    def refused(digests: Any, builds: Any, **options: Any) -> Any:
        if any(prompt.agent_id == bad.pk for prompt, _, _ in builds):
            raise IntegrityError("refused")
        return publish_versions(digests, builds, **options)

    monkeypatch.setattr(builds_services, "publish_versions", refused)
    return bad


def test_one_that_the_database_refuses_does_not_sink_its_batch(pilot, refusing):
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY)
    assert (len(versions(pilot)), len(versions(refusing))) == (2, 1)
    assert {cause.agent_id for cause in BuildCause.unscoped.all()} == {refusing.pk}


@pytest.mark.planted
def test_a_batch_without_retry_fails_for_all_its_agents(pilot, refusing, monkeypatch):
    """Planted fault: a batch fails as a unit."""
    monkeypatch.setattr(builds_services, "rebuild_batch_with_retry", builds_services.rebuild_batch)
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY)
    assert (len(versions(pilot)), len(versions(refusing))) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("many", [8, pytest.param(30, marks=pytest.mark.hard)])
def test_the_number_of_statements_does_not_grow_with_the_prompts(pilot, workspace, slack, monkeypatch, many):
    monkeypatch.setattr("prompts.receivers.build_or_enqueue", lambda *_: None)
    cooks = [make_agent(workspace, f"cook-{at}", soul=pilot.soul, channels=[slack]) for at in range(many)]
    agents = [agent.pk for agent in cooks]
    rebuild_agents(workspace, agents)
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY)
    few = statements(lambda: rebuild_agents(workspace, agents[:2]), versions=2)
    assert statements(lambda: rebuild_agents(workspace, agents[2:]), versions=many - 2) <= few <= 40


def statements(action: Callable[[], Any], *, versions: int) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert len(action().versions) == versions
    return len(queries)
