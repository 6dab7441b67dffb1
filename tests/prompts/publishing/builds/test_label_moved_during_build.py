"""lock_prompts waiting for a running build sees the version that the build added."""

import threading
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.utils import timezone

from personas.contents.services import SaltedDigests
from personas.models import Agent
from prompts.assembly.inputs import Text
from prompts.models import AgentPrompt
from prompts.publishing.builds.compiler import compile_prompt
from prompts.publishing.builds.publish import BuildAuthor, publish_versions
from prompts.publishing.builds.services import lock_or_create_prompts, rebuild_agents
from prompts.publishing.inputs import collect_inputs
from prompts.publishing.labels.services import lock_prompts
from tests.database_locks import is_waiting_for_lock
from tests.factories import make_agent, make_channel, make_soul
from tests.workers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pilot(workspace) -> Agent:
    soul, deck = make_soul(workspace, text="Be brave."), make_channel(workspace, "deck")
    agent = make_agent(workspace, "pilot", soul=soul, channels=[deck])
    rebuild_agents(workspace, [agent.pk])
    return agent


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="on SQLite the second writer waits to begin")
def test_who_waited_for_a_build_sees_the_version_that_it_made(pilot):
    [collected] = collect_inputs(pilot.workspace_id, [pilot], at=timezone.now())
    build = compile_prompt(replace(collected, inputs=replace(collected.inputs, soul=Text("Be wise."))))
    [place] = AgentPrompt.objects.in_workspace(pilot.workspace_id).values_list("pk", flat=True)
    locked: list[AgentPrompt] = []

    def wait_and_lock() -> None:
        with transaction.atomic():
            locked.extend(lock_prompts(pilot.workspace_id, [place]))
        connection.close()

    waiting = threading.Thread(target=wait_and_lock)
    with transaction.atomic():
        [prompt] = lock_or_create_prompts(pilot.workspace_id, [pilot.pk]).values()
        publish_versions(
            SaltedDigests(pilot.workspace_id), [(prompt, build, BuildAuthor("test"))], at=timezone.now()
        )
        prompt.save()
        waiting.start()
        assert wait_for(is_waiting_for_lock)
    waiting.join(60)
    assert [(row.last_number, row.latest and row.latest.number) for row in locked] == [(2, 2)]
