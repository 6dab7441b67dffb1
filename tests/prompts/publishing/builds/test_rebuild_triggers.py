"""Rebuild triggers: one test for each row of the table in docs/rebuilding.md, with its cause."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.utils import timezone

from core.task_queue import breaker
from personas.models import Agent
from personas.records.services import edit_record
from prompts.publishing.builds.sweep import list_waiting_workspaces, request_due_rebuilds
from prompts.publishing.versions.selectors import get_version_text
from prompts.tasks import rebuild_prompts_job
from skills.agent_context.services import choose_context
from skills.files.services import approve_file
from tests.factories import (
    BY,
    make_agent,
    make_channel,
    make_memory,
    make_soul,
    make_source,
    make_tool,
    refreshed,
)
from tests.prompts.publishing.builds.upgrade_stage import latest, why
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
from tests.skills.files.file_samples import file_at, write, write_skill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]


def set_stage(shared: SharedCast) -> Agent:
    workspace = shared.workspace
    channel = make_channel(workspace, "deck")
    return make_agent(workspace, "pilot", soul=make_soul(workspace, text="Be brave."), channels=[channel])


@pytest.fixture
def pilot(props: Agent) -> Agent:
    return props


@pytest.fixture
def source(workspace, pilot, tmp_path: Path, settings) -> Any:
    """A folder that the pilot reads."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / "AGENTS.md", "Knock first.\n")
    source = make_source(workspace, tmp_path, harnesses=["pi"])
    choose_context(pilot, source, "pi", working_directory="", expected=pilot.revision, by=BY)
    refreshed(source)
    return source


def reread(agent: Agent) -> Any:
    return Agent.objects.in_workspace(agent.workspace_id).get(pk=agent.pk)


# --- tools, reload, resources, registry ----------------------------------------------------------------


def test_another_set_of_active_tools_is_built_at_once(workspace, pilot):
    bell = make_tool(workspace, "ring_bell", snippet="Ring the bell")
    edit_record(reread(pilot), {"tools": [bell]}, expected=pilot.revision, by=BY)
    assert "ring_bell" in get_version_text(latest(pilot))
    assert why(pilot) == "Agent “Pilot” revision 2"


def test_a_refresh_builds_in_changed_files(pilot, source, tmp_path):
    assert "Knock first." in get_version_text(latest(pilot))
    write(tmp_path / "AGENTS.md", "Knock twice.\n")
    refreshed(source)
    assert "Knock twice." in get_version_text(latest(pilot))
    assert why(pilot) == "Refresh of “House files”"


def test_the_refresh_and_rebuild_commands_reload_by_hand(pilot, source, tmp_path, capsys):
    write(tmp_path / "AGENTS.md", "Knock twice.\n")
    call_command("refresh_source", "harbour", source.slug)
    assert "Knock twice." in get_version_text(latest(pilot))
    number = latest(pilot).number
    call_command("rebuild_prompts")
    assert "0 built, 1 unchanged" in capsys.readouterr().out
    assert latest(pilot).number == number


def test_a_resource_that_was_discovered_is_built_in_once_it_is_trusted(pilot, source, tmp_path):
    path = write_skill(tmp_path, "brew-tea", description="Brews tea for guests.")
    refreshed(source)
    assert "Brews tea for guests." not in get_version_text(latest(pilot))
    file = file_at(source, path)
    approve_file(file, digest=file.latest.digest, by=BY)
    assert "Brews tea for guests." in get_version_text(latest(pilot))
    assert why(pilot) == "Source"


def test_a_tool_that_changes_in_the_registry_changes_who_uses_it(workspace, pilot):
    bell = make_tool(workspace, "ring_bell", snippet="Ring the bell")
    edit_record(reread(pilot), {"tools": [bell]}, expected=pilot.revision, by=BY)
    edit_record(bell, {"snippet": "Ring it twice"}, expected=bell.revision, by=BY)
    assert "Ring it twice" in get_version_text(latest(pilot))
    assert why(pilot) == "Tool “ring_bell” revision 2"


# --- other triggers ------------------------------------------------------------------------------------


def test_any_other_record_that_is_edited_is_built_in(pilot):
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY)
    assert "Be wise." in get_version_text(latest(pilot))
    assert why(pilot) == "Soul “Calm” revision 2"


def test_a_memory_whose_time_has_come_is_found_by_the_sweep(workspace, pilot):
    tomorrow = timezone.now() + timedelta(days=1)
    make_memory(workspace, "The mast is being painted.", valid_from=tomorrow)
    assert "being painted" not in get_version_text(latest(pilot))
    with time_machine.travel(tomorrow + timedelta(minutes=1)):
        assert request_due_rebuilds(timezone.now()) == [(workspace.pk, [pilot.pk])]
        assert request_due_rebuilds(timezone.now()) == []
        rebuild_prompts_job(workspace.pk, [pilot.pk])
        assert request_due_rebuilds(timezone.now()) == []
    assert "being painted" in get_version_text(latest(pilot))
    assert why(pilot) == "Rebuilt"


def test_a_change_whose_message_was_lost_is_found_by_the_sweep(workspace, pilot, settings, monkeypatch):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    monkeypatch.setattr(breaker, "open_until", float("inf"))
    make_memory(workspace, "The mast is painted.")
    assert "is painted" not in get_version_text(latest(pilot))
    assert list_waiting_workspaces(timezone.now()) == []
    assert list_waiting_workspaces(timezone.now() + timedelta(seconds=11)) == [workspace.pk]
    rebuild_prompts_job(workspace.pk, [pilot.pk])
    assert "is painted" in get_version_text(latest(pilot))
