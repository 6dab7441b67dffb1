"""Upgrades (docs/rebuilding.md): prompts of an older compiler are requested once."""

import pytest

from core.task_queue import breaker
from personas.models import Agent
from prompts.models import AgentPrompt, BuildCause
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.builds.sweep import request_compiler_rebuilds
from prompts.publishing.versions.selectors import get_version_text
from prompts.tasks import rebuild_prompts_job
from tests.factories import make_agent, make_channel
from tests.prompts.publishing.builds.upgrade_stage import latest, make_upgraded, older_compiler, why
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]


@pytest.fixture
def upgraded(workspace, monkeypatch) -> Agent:
    return make_upgraded(workspace, monkeypatch)


def test_after_an_upgrade_the_first_sweep_requests_rebuilds(upgraded):
    assert request_compiler_rebuilds() == [(upgraded.workspace_id, [upgraded.pk])]
    rebuild_prompts_job(upgraded.workspace_id, [upgraded.pk])
    assert "Be brave." in get_version_text(latest(upgraded))
    assert (why(upgraded), latest(upgraded).author_label) == ("New assembly rules", "dramatis")


def test_an_upgrade_that_changes_no_text_adds_no_version_and_is_requested_once(workspace, monkeypatch):
    with older_compiler(monkeypatch, changes_text=False):
        agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    assert request_compiler_rebuilds() == [(workspace.pk, [agent.pk])]
    built = rebuild_agents(workspace, [agent.pk])
    assert (built.versions, built.unchanged) == ([], 1)
    assert latest(agent).compiler == "older"
    assert request_compiler_rebuilds() == []
    assert not BuildCause.unscoped.exists()


def test_a_return_to_the_older_compiler_is_noticed_as_well(upgraded, monkeypatch):
    request_compiler_rebuilds()
    rebuild_agents(upgraded.workspace_id, [upgraded.pk])
    with older_compiler(monkeypatch, changes_text=True):
        assert request_compiler_rebuilds() == [(upgraded.workspace_id, [upgraded.pk])]


def test_what_could_never_be_built_is_tried_once_by_each_compiler(workspace, settings, monkeypatch):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    monkeypatch.setattr(breaker, "open_until", float("inf"))
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    Agent.unscoped.filter(pk=agent.pk).update(layout="harbour")
    assert rebuild_agents(workspace, [agent.pk]).failed == 1
    assert request_compiler_rebuilds() == [(workspace.pk, [agent.pk])]
    assert rebuild_agents(workspace, [agent.pk]).failed == 1
    assert request_compiler_rebuilds() == []


def test_a_start_without_an_upgrade_asks_for_nothing(workspace):
    make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    assert request_compiler_rebuilds() == []
    assert request_compiler_rebuilds() == []


def test_a_sweep_that_only_compares_versions_requests_rebuilds_forever(workspace, monkeypatch):
    """Planted fault: without the stored compiler, an unchanged prompt is rebuilt at every sweep."""
    with older_compiler(monkeypatch, changes_text=False):
        agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    for _ in range(2):
        AgentPrompt.unscoped.update(compiler="")
        assert request_compiler_rebuilds() == [(workspace.pk, [agent.pk])]
        rebuild_agents(workspace, [agent.pk])
