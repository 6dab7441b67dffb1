"""The prompts that contain a record, by API."""

import pytest

from personas.records.services import edit_record
from prompts.models import AgentPrompt
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label
from tests.factories import BY, make_agent, make_channel, make_soul
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
def scene(workspace):
    """A soul that two prompts had; one of them has it no longer, except under the label canary."""
    soul, channel = make_soul(workspace), make_channel(workspace, "deck")
    agents = [make_agent(workspace, slug, soul=soul, channels=[channel]) for slug in ("pilot", "cook")]
    rebuild_agents(workspace, [agent.pk for agent in agents])
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=agents[1])
    assert prompt.latest is not None
    move_label(prompt, "canary", prompt.latest, expected=None, by=BY)
    edit_record(agents[1], {"soul": None}, expected=agents[1].revision, by=BY)
    rebuild_agents(workspace, [agents[1].pk])
    return soul


def test_the_prompts_of_a_record_are_listed_with_labels_and_versions(admin, scene):
    answer = admin.get(f"usages?kind=soul&id={scene.pk}")
    assert answer.status_code == 200, answer.content
    rows = {row["agent"]: row for row in answer.json()["items"]}
    assert rows["pilot"]["versions"] == [{"first": 1, "last": None}]
    assert "latest" in rows["pilot"]["labels"]
    assert rows["cook"]["versions"] == [{"first": 1, "last": 1}]
    assert (rows["cook"]["labels"], rows["cook"]["is_current"]) == (["canary"], True)
    first = admin.get(f"usages?kind=soul&id={scene.pk}&limit=1").json()
    assert len(first["items"]) == 1
    rest = admin.get(f"usages?kind=soul&id={scene.pk}&cursor={first['next_cursor']}").json()
    assert {row["agent"] for row in [*first["items"], *rest["items"]]} == {"pilot", "cook"}


def test_a_record_elsewhere_is_not_found_and_both_parameters_are_needed(admin, elsewhere, scene):
    foreign = make_soul(elsewhere)
    assert admin.get(f"usages?kind=soul&id={foreign.pk}").status_code == 404
    assert admin.get(f"usages?kind=memory&id={scene.pk}").status_code == 404
    assert admin.get(f"usages?id={scene.pk}").status_code == 422
    assert admin.get(f"usages?kind=ghost&id={scene.pk}").status_code == 422


def test_limited_keys_do_not_see_the_prompts_of_a_shared_record(key_for, workspace, alice, scene):
    key = key_for(workspace, alice, agents=["pilot"])
    assert key.get(f"usages?kind=soul&id={scene.pk}").status_code == 403
