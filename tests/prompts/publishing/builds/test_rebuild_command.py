"""The rebuild_prompts command: one agent, a workspace or all; no version where nothing changed."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from core.task_queue import breaker
from personas.models import Agent
from personas.records.services import archive_record
from prompts.models import AgentPrompt, BuildCause, LabelMove, PromptLabel, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.provenance.causes import describe_causes
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul, make_tool
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
# The command needs no --workspace when there is only one.
HAS_ELSEWHERE = False


def set_stage(shared: SharedCast) -> tuple[Agent, Agent]:
    workspace = shared.workspace
    deck = make_channel(workspace, "deck")
    pilot = make_agent(workspace, "pilot", soul=make_soul(workspace, text="Be brave."), channels=[deck])
    return pilot, make_agent(workspace, "cook", channels=[deck, make_channel(workspace, "galley")])


@pytest.fixture
def pilot(props: tuple[Agent, Agent]) -> Agent:
    return props[0]


@pytest.fixture
def cook(props: tuple[Agent, Agent]) -> Agent:
    return props[1]


def run_command(*arguments: str) -> str:
    out = StringIO()
    call_command("rebuild_prompts", *arguments, stdout=out)
    return out.getvalue()


def get_command_error(*arguments: str) -> str:
    with pytest.raises(CommandError) as caught:
        run_command(*arguments)
    return str(caught.value)


def clear_latest_versions(agent: Agent) -> None:
    """Detach the latest versions, as after restoring a backup, so that the next build adds a version."""
    AgentPrompt.unscoped.filter(agent=agent).update(latest=None)


def list_build_rows() -> Any:
    """Return all rows that a build could add or change."""
    kinds = (PromptVersion, LabelMove, PromptLabel)
    marks = list(AgentPrompt.unscoped.order_by("pk").values_list("pk", "last_number", "last_hash", "latest"))
    return [list(kind.unscoped.order_by("pk").values()) for kind in kinds], marks


def test_editing_nothing_and_rebuilding_everything_makes_no_version(workspace, pilot, cook, elsewhere):
    make_agent(elsewhere, "pilot", channels=[make_channel(elsewhere, "deck")])
    make_memory(workspace, "The harbour closes at nine.")
    make_tool(workspace, "ring_bell", description="Rings the bell.", agents=[pilot])
    before = list_build_rows()
    out = run_command()
    assert "harbour: 0 built, 3 unchanged, 0 failed" in out
    assert "elsewhere: 0 built, 1 unchanged, 0 failed" in out
    assert list_build_rows() == before


def test_it_lists_what_was_built_with_version_numbers(pilot, cook):
    clear_latest_versions(cook)
    out = run_command("--workspace", "harbour")
    assert "harbour: 2 built, 1 unchanged, 0 failed" in out
    assert "  built Cook · Deck: version 2\n" in out
    assert "  built Cook · Galley: version 2\n" in out


def test_one_agent_is_built_and_no_other(pilot, cook):
    clear_latest_versions(pilot)
    clear_latest_versions(cook)
    assert "1 built, 0 unchanged" in run_command("--agent", "pilot")
    assert PromptVersion.unscoped.filter(prompt__agent=cook).count() == 2


def test_a_channel_names_the_agents_that_speak_on_it(pilot, cook):
    assert "0 built, 2 unchanged" in run_command("--channel", "galley")
    assert "0 built, 3 unchanged" in run_command("--channel", "deck")
    assert "0 built, 2 unchanged" in run_command("--channel", "deck", "--agent", "cook")


def test_what_cannot_be_built_is_named_and_the_command_fails(pilot, cook, capsys):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    before = list_build_rows()
    with pytest.raises(CommandError, match="1 prompts could not be built"):
        call_command("rebuild_prompts")
    out = capsys.readouterr().out
    assert "0 built, 2 unchanged, 1 failed" in out
    assert "  failed Pilot · Deck: Not built: The layout “harbour” no longer exists." in out
    assert list_build_rows() == before


@pytest.mark.parametrize("more", [(), ("--later",)])
def test_an_archived_agent_is_refused_by_name_and_left_out_among_others(pilot, cook, more):
    archive_record(pilot, by=BY)
    before = list_build_rows()
    assert (
        get_command_error("--agent", "pilot", *more)
        == "“Pilot” is archived. Restore it to build its prompts."
    )
    assert not BuildCause.unscoped.exists()
    assert list_build_rows() == before
    assert "0 built, 2 unchanged, 0 failed" in run_command()


def test_what_is_not_there_is_refused(pilot, elsewhere):
    home = ("--workspace", "harbour")
    assert get_command_error("--workspace", "nowhere") == "Workspace “nowhere” not found."
    assert get_command_error(*home, "--agent", "nobody") == "Agent “nobody” not found in “harbour”."
    assert get_command_error(*home, "--channel", "attic") == "Active channel “attic” not found in “harbour”."
    make_channel(pilot.workspace, "bridge")
    message = get_command_error(*home, "--agent", "pilot", "--channel", "bridge")
    assert message == "Agent “pilot” on “bridge” not found in “harbour”."
    assert get_command_error("--agent", "pilot") == "There are several workspaces. Name one with --workspace."


def test_later_means_the_workers_and_a_broker_that_is_down_only_delays_it(pilot, cook, monkeypatch):
    monkeypatch.setattr(breaker, "open_until", float("inf"))
    assert "harbour: 3 prompts queued for the workers" in run_command("--later")
    assert sorted(BuildCause.unscoped.values_list("agent_id", flat=True)) == sorted([pilot.pk, cook.pk])
    clear_latest_versions(pilot)
    rebuild_agents(pilot.workspace_id, [pilot.pk])
    version = PromptVersion.unscoped.filter(prompt__agent=pilot).latest("number")
    [[cause]] = describe_causes(pilot.workspace_id, [version.causes])
    assert (str(cause), version.author_label) == ("Rebuilt", "dramatis")
