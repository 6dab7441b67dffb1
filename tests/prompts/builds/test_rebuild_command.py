"""Building by hand: one agent, a workspace or all, told in words; nothing new where nothing changed."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from core.task_queue import breaker
from personas.models import Agent, Workspace
from personas.records.services import archive_record
from prompts.builds.services import rebuild_agents
from prompts.models import AgentPrompt, BuildCause, LabelMove, PromptLabel, PromptVersion
from prompts.provenance.causes import describe_causes
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul, make_tool
from tests.shared_cast import (  # noqa: F401  # fixtures
    cast,
    shared_alice,
    shared_bob,
    shared_commits,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]


def set_stage(workspace: Workspace) -> tuple[Agent, Agent]:
    deck = make_channel(workspace, "deck")
    pilot = make_agent(workspace, "pilot", soul=make_soul(workspace, text="Be brave."), channels=[deck])
    return pilot, make_agent(workspace, "cook", channels=[deck, make_channel(workspace, "galley")])


@pytest.fixture
def pilot(props: tuple[Agent, Agent]) -> Agent:
    return props[0]


@pytest.fixture
def cook(props: tuple[Agent, Agent]) -> Agent:
    return props[1]


def said(*words: str) -> str:
    out = StringIO()
    call_command("rebuild_prompts", *words, stdout=out)
    return out.getvalue()


def refused(*words: str) -> str:
    with pytest.raises(CommandError) as caught:
        said(*words)
    return str(caught.value)


def forget_what_was_built(agent: Agent) -> None:
    """As if a version had been lost to a restored backup: the next build has other words than the latest."""
    AgentPrompt.unscoped.filter(agent=agent).update(latest=None)


def all_rows() -> Any:
    """Everything a build could add to or move."""
    kinds = (PromptVersion, LabelMove, PromptLabel)
    marks = list(AgentPrompt.unscoped.order_by("pk").values_list("pk", "last_number", "last_hash", "latest"))
    return [list(kind.unscoped.order_by("pk").values()) for kind in kinds], marks


def test_editing_nothing_and_rebuilding_everything_makes_no_version(workspace, pilot, cook, elsewhere):
    make_agent(elsewhere, "pilot", channels=[make_channel(elsewhere, "deck")])
    make_memory(workspace, "The harbour closes at nine.")
    make_tool(workspace, "ring_bell", description="Rings the bell.", agents=[pilot])
    before = all_rows()
    out = said()
    assert "harbour: 0 built, 3 unchanged, 0 failed" in out
    assert "elsewhere: 0 built, 1 unchanged, 0 failed" in out
    assert all_rows() == before


def test_it_tells_what_was_built_and_as_which_version(pilot, cook):
    forget_what_was_built(cook)
    out = said("--workspace", "harbour")
    assert "harbour: 2 built, 1 unchanged, 0 failed" in out
    assert "  built Cook · Deck: version 2\n" in out
    assert "  built Cook · Galley: version 2\n" in out


def test_one_agent_is_built_and_no_other(pilot, cook):
    forget_what_was_built(pilot)
    forget_what_was_built(cook)
    assert "1 built, 0 unchanged" in said("--agent", "pilot")
    assert PromptVersion.unscoped.filter(prompt__agent=cook).count() == 2


def test_a_channel_names_the_agents_that_speak_on_it(pilot, cook):
    assert "0 built, 2 unchanged" in said("--channel", "galley")
    assert "0 built, 3 unchanged" in said("--channel", "deck")
    assert "0 built, 2 unchanged" in said("--channel", "deck", "--agent", "cook")


def test_what_cannot_be_built_is_named_and_the_command_fails(pilot, cook, capsys):
    Agent.unscoped.filter(pk=pilot.pk).update(layout="harbour")
    before = all_rows()
    with pytest.raises(CommandError, match="1 could not be built: bots still get what they got before"):
        call_command("rebuild_prompts")
    out = capsys.readouterr().out
    assert "0 built, 2 unchanged, 1 failed" in out
    assert "  failed Pilot · Deck: Not built: There is no layout “harbour” any more." in out
    assert all_rows() == before


@pytest.mark.parametrize("more", [(), ("--later",)])
def test_an_archived_agent_is_refused_by_name_and_left_out_among_others(pilot, cook, more):
    archive_record(pilot, by=BY)
    before = all_rows()
    assert refused("--agent", "pilot", *more) == "“Pilot” is archived. Restore it to build its prompts."
    assert not BuildCause.unscoped.exists()
    assert all_rows() == before
    assert "0 built, 2 unchanged, 0 failed" in said()


def test_what_is_not_there_is_refused(pilot, elsewhere):
    home = ("--workspace", "harbour")
    assert refused("--workspace", "nowhere") == "There is no workspace “nowhere”."
    assert refused(*home, "--agent", "nobody") == "There is no agent “nobody” in “harbour”."
    assert refused(*home, "--channel", "attic") == "There is no channel “attic” in use in “harbour”."
    make_channel(pilot.workspace, "bridge")
    words = refused(*home, "--agent", "pilot", "--channel", "bridge")
    assert words == "There is no agent “pilot” on “bridge” in “harbour”."
    assert refused("--agent", "pilot") == "There are several workspaces. Name one with --workspace."


def test_later_means_the_workers_and_a_broker_that_is_down_only_delays_it(pilot, cook, monkeypatch):
    monkeypatch.setattr(breaker, "open_until", float("inf"))
    assert "harbour: 3 left to the workers" in said("--later")
    assert sorted(BuildCause.unscoped.values_list("agent_id", flat=True)) == sorted([pilot.pk, cook.pk])
    forget_what_was_built(pilot)
    rebuild_agents(pilot.workspace_id, [pilot.pk])
    version = PromptVersion.unscoped.filter(prompt__agent=pilot).latest("number")
    [[cause]] = describe_causes(pilot.workspace_id, [version.causes])
    assert (str(cause), version.author_label) == ("Built anew", "dramatis")
