"""Import of a nova agent's configuration: legacy role, identity, directories, responsibilities."""

import json
from typing import Any

import pytest

from personas.agents.agent_file import import_agent
from personas.api_keys.format import BOT
from personas.errors import InvalidInput
from personas.models import Agent, Identity, Responsibility
from personas.records.services import edit_record
from prompts.publishing.builds.services import rebuild_agents
from tests.factories import BY, make_agent, make_channel
from tests.prompts.serving.serving_stage import fetch, make_stage

pytestmark = pytest.mark.django_db
ROLE = "You are Nova, a personal assistant.\nBe brief."
CURRENT = {
    "name": "Nova",
    "description": "Personal assistant",
    "identity": "You are Nova.",
    "instructions": "Answer in one line.",
    "responsibilities": [
        {"title": "Agent routing", "content": "Decide who answers."},
        {"title": "Onboarding", "text": "Help the user."},
    ],
}


def read_prompt(workspace, agent) -> str:
    """Serve the agent's prompt on a channel."""
    stage = make_stage(workspace)
    row = Agent.objects.in_workspace(workspace).get(pk=agent.pk)
    edit_record(row, {"channels": [make_channel(workspace, "bridge")]}, expected=row.revision, by=BY)
    rebuild_agents(workspace, [agent.pk])
    return fetch(stage.secret, agent.slug, "bridge").text


def test_a_legacy_role_becomes_the_identity_and_there_are_no_instructions(workspace, by_alice):
    data = {"name": "Nova", "role": ROLE, "instructions": "Ignored.", "model": "large", "trust": None}
    result = import_agent(workspace, data, by=by_alice)
    agent: Any = result.agent
    assert (agent.slug, agent.layout, agent.instructions) == ("nova", "nova", "")
    assert (agent.identity.name, agent.identity.text) == ("Nova", ROLE)
    assert result.not_imported == ["instructions", "model"]
    text = read_prompt(workspace, agent)
    assert f"<Identity>\n{ROLE}\n</Identity>" in text
    assert "<Instructions>" not in text
    assert "Role>" not in text


@pytest.mark.slow
def test_identity_instructions_and_responsibilities_are_imported_in_order(workspace, by_alice):
    result = import_agent(workspace, CURRENT, by=by_alice)
    assert result.not_imported == []
    assert [(row.title, row.text) for row in result.responsibilities] == [
        ("Agent routing", "Decide who answers."),
        ("Onboarding", "Help the user."),
    ]
    text = read_prompt(workspace, result.agent)
    assert "<Identity>\nYou are Nova.\n</Identity>" in text
    assert "<Instructions>\nAnswer in one line.\n</Instructions>" in text
    assert text.index('title="Agent routing"') < text.index('title="Onboarding"')


@pytest.mark.slow
@pytest.mark.parametrize("key", ["identity", "role"])
def test_directories_are_imported_as_they_are(workspace, by_alice, key):
    result = import_agent(
        workspace, {"name": "N", key: ROLE, "directories": ["/srv", "~/notes"]}, by=by_alice
    )
    assert (result.agent.directories, result.not_imported) == (["/srv", "~/notes"], [])
    assert "directories:\n- /srv\n- ~/notes\n</Directories>" in read_prompt(workspace, result.agent)


def test_with_an_identity_the_role_is_not_imported(workspace, by_alice):
    result = import_agent(workspace, CURRENT | {"role": "Old."}, by=by_alice)
    agent: Any = result.agent
    assert (agent.identity.text, result.not_imported) == ("You are Nova.", ["role"])


def test_a_derived_slug_is_free_and_a_given_one_must_be(workspace, by_alice):
    make_agent(workspace, "nova")
    assert import_agent(workspace, {"name": "Nova", "role": ROLE}, by=by_alice).agent.slug == "nova-2"
    with pytest.raises(InvalidInput) as caught:
        import_agent(workspace, {"name": "Nova", "slug": "nova", "role": ROLE}, by=by_alice)
    assert list(caught.value.errors) == ["slug"]


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ([], "__all__"),
        ({}, "name"),
        ({"name": " "}, "name"),
        ({"name": 7}, "name"),
        ({"name": "N", "role": ["x"]}, "role"),
        ({"name": "N", "role": "x" * 20_001}, "role"),
        ({"name": "N", "identity": "x" * 20_001}, "identity"),
        ({"name": "N", "slug": "Not A Slug"}, "slug"),
        ({"name": "N", "directories": "/srv"}, "directories"),
        ({"name": "N", "directories": ["/srv", 7]}, "directories"),
        ({"name": "N", "responsibilities": "x"}, "responsibilities"),
        ({"name": "N", "responsibilities": [{}] * 101}, "responsibilities"),
        ({"name": "N", "responsibilities": [CURRENT["responsibilities"][0], 7]}, "responsibilities.1"),
        ({"name": "N", "responsibilities": [{"title": "T"}]}, "responsibilities.0.text"),
        ({"name": "N", "responsibilities": [{"title": 7, "content": "x"}]}, "responsibilities.0.title"),
    ],
)
def test_an_error_names_the_value_and_nothing_is_created(workspace, by_alice, data, path):
    with pytest.raises(InvalidInput) as caught:
        import_agent(workspace, data, by=by_alice)
    assert list(caught.value.errors) == [path]
    for model in (Agent, Identity, Responsibility):
        assert not model.objects.in_workspace(workspace).exists()


def test_the_api_imports_and_lists_what_was_not_imported(admin, workspace):
    answer = admin.post("agents:import", {"name": "Nova", "role": ROLE, "model": "large"})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["agent"]["slug"], body["agent"]["identity"], body["agent"]["layout"]) == (
        "nova",
        "nova",
        "nova",
    )
    assert (body["responsibilities"], body["not_imported"]) == (0, ["model"])
    assert answer["Location"] == "/api/v1/agents/nova"
    refused = admin.post("agents:import", {"name": "N", "responsibilities": [{"content": "x"}]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/responsibilities/0/title"


def test_bots_and_keys_for_some_agents_cannot_import_agents(key_for, workspace, alice):
    make_agent(workspace, "mira")
    for key in (key_for(workspace, alice, BOT), key_for(workspace, alice, agents=["mira"])):
        assert key.post("agents:import", {"name": "Nova", "role": ROLE}).status_code == 403


@pytest.mark.slow
def test_the_page_imports_an_agent(as_alice, workspace):
    url = f"/w/{workspace.slug}/agents/import/"
    assert "Import nova agent" in as_alice.get(f"/w/{workspace.slug}/agents/").content.decode()
    data = {"name": "Nova", "role": ROLE, "model": "large"}
    page = as_alice.post(url, {"text": json.dumps(data)}, follow=True)
    text = page.content.decode()
    assert "Agent “Nova” imported." in text
    assert "These fields were not imported: model." in text


def test_the_page_shows_what_is_wrong_with_the_configuration(as_alice, workspace):
    data = {"name": "Nova", "responsibilities": [7]}
    page = as_alice.post(f"/w/{workspace.slug}/agents/import/", {"text": json.dumps(data)})
    assert page.status_code == 422
    assert "responsibilities[0]: Expected an object with “title” and “content”." in page.content.decode()
    page = as_alice.post(f"/w/{workspace.slug}/agents/import/", {"text": "[]"})
    assert page.status_code == 422
    assert "__all__" not in page.content.decode()
