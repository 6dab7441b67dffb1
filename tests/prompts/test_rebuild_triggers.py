"""Every row of the table in docs/rebuilding.md: what happens there is built here, with its cause."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.utils import timezone

from personas.models import Agent
from personas.queueing import breaker
from personas.services.records import edit_record
from prompts import compiling
from prompts.assembly.layouts import LAYOUTS
from prompts.causes import causes_in_words
from prompts.models import AgentPrompt, BuildCause, PromptVersion
from prompts.selectors import text_of
from prompts.services import sweeping
from prompts.services.building import rebuild_agents
from prompts.services.sweeping import agents_due, agents_waiting, note_upgrade
from prompts.tasks import rebuild_prompts_job, sweep_prompts_job
from skills.services.contexts import choose_context
from skills.services.files import adopt_file
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
from tests.skills.context_making import file_at, write, write_skill
from tests.workers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pilot(workspace) -> Agent:
    channel = make_channel(workspace, "deck")
    return make_agent(workspace, "pilot", soul=make_soul(workspace, text="Be brave."), channels=[channel])


@pytest.fixture
def source(workspace, pilot, tmp_path: Path, settings) -> Any:
    """A folder that the pilot reads."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / "AGENTS.md", "Knock first.\n")
    source = make_source(workspace, tmp_path, harnesses=["pi"])
    choose_context(pilot, source, "pi", working_directory="", expected=pilot.revision, by=BY)
    refreshed(source)
    return source


def latest(agent: Agent) -> PromptVersion:
    return PromptVersion.unscoped.filter(prompt__agent=agent).latest("number")


def why(agent: Agent) -> str:
    """The causes of the latest version, in the words of its page."""
    version = latest(agent)
    [causes] = causes_in_words(version.workspace_id, [version.causes])
    return "; ".join(map(str, causes))


def reread(agent: Agent) -> Any:
    return Agent.objects.in_workspace(agent.workspace_id).get(pk=agent.pk)


# --- start ---------------------------------------------------------------------------------------------


@contextmanager
def older_compiler(monkeypatch: pytest.MonkeyPatch, *, words: bool) -> Iterator[None]:
    """The product before an upgrade: another digest of its code and, if asked for, other words."""
    with monkeypatch.context() as before:
        before.setattr(compiling, "compiler", lambda: "older")
        before.setattr(sweeping, "compiler", lambda: "older")
        if words:
            now = LAYOUTS["dramatis"]
            kept = tuple(part for part in now.parts if part.name != "soul")
            before.setitem(LAYOUTS, "dramatis", replace(now, parts=kept))
        yield


@pytest.fixture
def upgraded(workspace, monkeypatch) -> Agent:
    """Built by an older compiler in other words; the sweep of that time has seen it."""
    with older_compiler(monkeypatch, words=True):
        channel = make_channel(workspace, "deck")
        soul = make_soul(workspace, text="Be brave.")
        agent = make_agent(workspace, "pilot", soul=soul, channels=[channel])
        assert note_upgrade() == []
    assert latest(agent).compiler == "older"
    assert "Be brave." not in text_of(latest(agent))
    return agent


def test_after_an_upgrade_the_first_sweep_asks_for_what_an_older_compiler_built(upgraded):
    assert note_upgrade() == [(upgraded.workspace_id, [upgraded.pk])]
    rebuild_prompts_job(upgraded.workspace_id, [upgraded.pk])
    assert "Be brave." in text_of(latest(upgraded))
    assert (why(upgraded), latest(upgraded).author_label) == ("A newer compiler", "dramatis")


def test_an_upgrade_that_changes_no_words_makes_no_version_and_is_not_asked_for_again(workspace, monkeypatch):
    with older_compiler(monkeypatch, words=False):
        agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    assert note_upgrade() == [(workspace.pk, [agent.pk])]
    built = rebuild_agents(workspace, [agent.pk])
    assert (built.versions, built.unchanged) == ([], 1)
    assert latest(agent).compiler == "older"
    assert note_upgrade() == []
    assert not BuildCause.unscoped.exists()


def test_a_return_to_the_older_compiler_is_noticed_as_well(upgraded, monkeypatch):
    note_upgrade()
    rebuild_agents(upgraded.workspace_id, [upgraded.pk])
    with older_compiler(monkeypatch, words=True):
        assert note_upgrade() == [(upgraded.workspace_id, [upgraded.pk])]


def test_what_could_never_be_built_is_tried_once_by_each_compiler(workspace, settings, monkeypatch):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    monkeypatch.setattr(breaker, "open_until", float("inf"))
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    Agent.unscoped.filter(pk=agent.pk).update(layout="harbour")
    assert rebuild_agents(workspace, [agent.pk]).failed == 1
    assert note_upgrade() == [(workspace.pk, [agent.pk])]
    assert rebuild_agents(workspace, [agent.pk]).failed == 1
    assert note_upgrade() == []


def test_a_start_without_an_upgrade_asks_for_nothing(pilot):
    assert note_upgrade() == []
    assert note_upgrade() == []


def test_a_sweep_that_compares_versions_alone_would_ask_for_ever(workspace, monkeypatch):
    """The planted fault: without its note, a prompt whose words stayed is built at every sweep."""
    with older_compiler(monkeypatch, words=False):
        agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    for _ in range(2):
        AgentPrompt.unscoped.update(compiler="")
        assert note_upgrade() == [(workspace.pk, [agent.pk])]
        rebuild_agents(workspace, [agent.pk])


def test_workers_carry_an_upgrade_out_by_themselves(upgraded, celery_worker):
    sweep_prompts_job()
    assert wait_for(lambda: "Be brave." in text_of(latest(upgraded)))


# --- tools, reload, resources, registry ----------------------------------------------------------------


def test_another_set_of_active_tools_is_built_at_once(workspace, pilot):
    bell = make_tool(workspace, "ring_bell", snippet="Ring the bell")
    edit_record(reread(pilot), {"tools": [bell]}, expected=pilot.revision, by=BY)
    assert "ring_bell" in text_of(latest(pilot))
    assert why(pilot) == "Agent “Pilot” revision 2"


def test_a_look_at_the_files_takes_in_what_was_rewritten(pilot, source, tmp_path):
    assert "Knock first." in text_of(latest(pilot))
    write(tmp_path / "AGENTS.md", "Knock twice.\n")
    refreshed(source)
    assert "Knock twice." in text_of(latest(pilot))
    assert why(pilot) == "A look at “House files”"


def test_the_commands_for_a_look_and_for_a_rebuild_reload_by_hand(pilot, source, tmp_path, capsys):
    write(tmp_path / "AGENTS.md", "Knock twice.\n")
    call_command("refresh_source", "harbour", source.slug)
    assert "Knock twice." in text_of(latest(pilot))
    number = latest(pilot).number
    call_command("rebuild_prompts")
    assert "0 built, 1 unchanged" in capsys.readouterr().out
    assert latest(pilot).number == number


def test_a_resource_that_was_discovered_is_built_in_once_it_is_trusted(pilot, source, tmp_path):
    path = write_skill(tmp_path, "brew-tea", description="Brews tea for guests.")
    refreshed(source)
    assert "Brews tea for guests." not in text_of(latest(pilot))
    file = file_at(source, path)
    adopt_file(file, digest=file.newest.digest, by=BY)
    assert "Brews tea for guests." in text_of(latest(pilot))
    assert why(pilot) == "Source"


def test_a_tool_that_changes_in_the_registry_changes_who_uses_it(workspace, pilot):
    bell = make_tool(workspace, "ring_bell", snippet="Ring the bell")
    edit_record(reread(pilot), {"tools": [bell]}, expected=pilot.revision, by=BY)
    edit_record(bell, {"snippet": "Ring it twice"}, expected=bell.revision, by=BY)
    assert "Ring it twice" in text_of(latest(pilot))
    assert why(pilot) == "Tool “ring_bell” revision 2"


# --- what the seed does not have -----------------------------------------------------------------------


def test_any_other_record_that_is_edited_is_built_in(pilot):
    edit_record(pilot.soul, {"text": "Be wise."}, expected=pilot.soul.revision, by=BY)
    assert "Be wise." in text_of(latest(pilot))
    assert why(pilot) == "Soul “Calm” revision 2"


def test_a_memory_whose_time_has_come_is_found_by_the_sweep(workspace, pilot):
    tomorrow = timezone.now() + timedelta(days=1)
    make_memory(workspace, "The mast is being painted.", valid_from=tomorrow)
    assert "being painted" not in text_of(latest(pilot))
    with time_machine.travel(tomorrow + timedelta(minutes=1)):
        assert agents_due(timezone.now()) == [(workspace.pk, [pilot.pk])]
        rebuild_prompts_job(workspace.pk, [pilot.pk])
        assert agents_due(timezone.now()) == []
    assert "being painted" in text_of(latest(pilot))
    assert why(pilot) == "Built anew"


def test_a_change_whose_message_was_lost_is_found_by_the_sweep(workspace, pilot, settings, monkeypatch):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    monkeypatch.setattr(breaker, "open_until", float("inf"))
    make_memory(workspace, "The mast is painted.")
    assert "is painted" not in text_of(latest(pilot))
    assert agents_waiting(timezone.now()) == []
    assert agents_waiting(timezone.now() + timedelta(seconds=11)) == [(workspace.pk, [pilot.pk])]
    rebuild_prompts_job(workspace.pk, [pilot.pk])
    assert "is painted" in text_of(latest(pilot))
