"""A channel added while a build waits for a lock is built, and its cause is not lost."""

import threading
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from personas.models import AgentChannel
from prompts.models import AgentPrompt, BuildCause
from prompts.publishing.builds.causes import add_build_causes
from prompts.publishing.builds.services import rebuild_agents
from tests.database_locks import is_waiting_for_lock
from tests.factories import make_agent, make_channel
from tests.workers import wait_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="on SQLite the second one waits to begin"),
]


def get_connection_params() -> dict[str, Any]:
    own = {"cursor_factory", "context", "prepare_threshold"}
    return {name: value for name, value in connection.get_connection_params().items() if name not in own}


def test_a_channel_that_comes_while_a_build_waits_is_built_in(workspace):
    deck, mast = (make_channel(workspace, name) for name in ("deck", "mast"))
    pilot = make_agent(workspace, "pilot", channels=[deck])
    rebuild_agents(workspace, [pilot.pk])
    errors: list[BaseException] = []

    def build() -> None:
        try:
            rebuild_agents(workspace, [pilot.pk])
        except BaseException as error:  # noqa: BLE001  # reported by the test
            errors.append(error)
        connection.close()

    builder = threading.Thread(target=build)
    with psycopg.connect(**get_connection_params()) as holder:
        holder.execute("SELECT 1 FROM prompts_agentprompt WHERE agent_id = %s FOR UPDATE", [pilot.pk])
        builder.start()
        assert wait_for(is_waiting_for_lock)
        with transaction.atomic():
            AgentChannel(workspace=workspace, agent=pilot, channel=mast, position=1).save()
            add_build_causes(workspace, [pilot.pk], {"kind": "agent", "by": "Alice"})
        holder.rollback()
        builder.join(60)
    assert errors == []
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent=pilot)
    assert {row.channel.slug: row.last_number for row in rows} == {"deck": 1, "mast": 1}
    assert not BuildCause.objects.in_workspace(workspace).exists()
