"""In the demo, rejecting a proposed memory asks for no review, and a rebuild changes nothing."""

import pytest
from django.test import override_settings

from personas.models import Agent, Memory, User
from prompts.publishing.builds.services import rebuild_agents
from prompts.studio.demo.load import load_demo
from tests.factories import signed_in
from tests.prompts.studio.demo.demo_stage import files_below

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def demo(tmp_path):
    with override_settings(**files_below(tmp_path)):
        workspace = load_demo()
        agents = Agent.objects.in_workspace(workspace).values_list("pk", flat=True)
        rebuild_agents(workspace, agents)
        yield workspace


def test_a_rebuild_after_loading_adds_no_version(demo):
    agents = Agent.objects.in_workspace(demo).values_list("pk", flat=True)
    assert [str(version) for version in rebuild_agents(demo, agents).versions] == []


def test_rejecting_a_proposed_memory_asks_for_no_review(demo):
    client = signed_in(User.objects.get(email="alice@example.com"))
    proposed = list(Memory.objects.in_workspace(demo).filter(status="proposed"))
    assert proposed
    for memory in proposed:
        path = f"/w/{demo.slug}/memories/{memory.pk}/archive/"
        asked = client.post(path, headers={"Dramatis-Review": "ask"})
        assert asked.status_code == 204, memory
