"""Rebuild all prompts by API, and the progress of rebuilds."""

from datetime import timedelta

import pytest
from django.utils import timezone

from personas.records.services import archive_record
from personas.roles import Role
from prompts.models import BuildCause
from prompts.publishing.builds.services import rebuild_agents
from tests.factories import BY, join, make_agent, make_channel, make_user
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def agents(workspace):
    channel = make_channel(workspace, "deck")
    agents = [make_agent(workspace, slug, channels=[channel]) for slug in ("pilot", "cook", "gone")]
    archive_record(agents[2], by=BY)
    rebuild_agents(workspace, [agent.pk for agent in agents[:2]])
    return agents[:2]


def test_all_active_agents_are_rebuilt_and_the_progress_is_read(admin, workspace, agents):
    before = timezone.now() - timedelta(seconds=1)
    idle = admin.get("rebuild").json()
    assert (idle["since"], idle["waiting"], idle["failed_prompts"]) == (None, 0, [])
    answer = admin.post("rebuild")
    assert (answer.status_code, answer.json()) == (202, {"prompts": 2}), answer.content
    assert answer["Location"] == "/api/v1/rebuild"
    assert admin.get("rebuild").json()["waiting"] == 2
    rebuild_agents(workspace, [agent.pk for agent in agents])
    done = admin.get("rebuild?since=" + before.isoformat().replace("+00:00", "Z")).json()
    assert (done["waiting"], done["rebuilt"], done["failed"]) == (0, 2, 0)


def test_viewers_read_the_progress_and_start_nothing(key_for, workspace, agents):
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    key = key_for(workspace, viewer)
    assert key.get("rebuild").status_code == 200
    assert key.post("rebuild").status_code == 403
    assert not BuildCause.objects.in_workspace(workspace).filter(agent__in=agents).exists()
