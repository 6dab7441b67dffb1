"""Directories, capabilities and documentation of an agent: from REST and pages into the built prompt."""

from typing import Any

import pytest

from personas.models import Agent
from personas.records.services import restore_revision
from prompts.assembly.texts.storage import STORAGE_GUIDE
from prompts.publishing.builds.compiler import build_pins
from prompts.publishing.inputs import collect_inputs
from tests.api_client import Api
from tests.factories import BY
from tests.personas.api.prompts_stage import Deck, good, problem
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def patch_agent(admin: Api, **values: Any) -> dict[str, Any]:
    etag = admin.get("agents/pilot")["ETag"]
    body: dict[str, Any] = good(admin.patch("agents/pilot", values, etag))
    return body


def read_built_text(admin: Api, deck: Deck) -> str:
    deck.build()
    versions = good(admin.get("agents/pilot/channels/deck/versions"))["items"]
    text: str = good(admin.get(f"prompt-versions/{versions[0]['digest']}"))["text"]
    return text


def test_nova_prints_directories_and_storage_of_the_stored_agent(admin: Api, deck: Deck) -> None:
    body = patch_agent(
        admin,
        layout="nova",
        working_directory="/srv/pilot",
        directories=["/srv/charts", "/srv/a b"],
        capabilities=["files", "carrier-pigeon"],
    )
    assert body["directories"] == ["/srv/charts", "/srv/a b"]
    assert body["capabilities"] == ["files", "carrier-pigeon"]
    text = read_built_text(admin, deck)
    assert "Your working directory is: /srv/pilot\n" in text
    assert "additional directories:\n- /srv/charts\n- /srv/a b\n</Directories>" in text
    assert f"<Storage>\n{STORAGE_GUIDE}\n</Storage>" in text


def test_no_stated_capabilities_differ_from_capabilities_that_are_not_stated(admin: Api, deck: Deck) -> None:
    body = patch_agent(admin, layout="nova", working_directory="/srv/pilot")
    assert body["capabilities"] is None
    text = read_built_text(admin, deck)
    assert "<Directories>" in text
    assert "<Storage>" not in text
    assert patch_agent(admin, capabilities=[])["capabilities"] == []
    text = read_built_text(admin, deck)
    assert "<Directories>" not in text
    assert "<Storage>" not in text
    assert patch_agent(admin, capabilities=None)["capabilities"] is None
    assert "<Directories>" in read_built_text(admin, deck)


def test_pi_prints_the_documentation_of_the_stored_agent(admin: Api, deck: Deck) -> None:
    patch_agent(
        admin, layout="pi", documentation_main="/opt/pi/README.md", documentation_examples="https://pi/ex"
    )
    text = read_built_text(admin, deck)
    assert "\n- Main documentation: /opt/pi/README.md\n- Examples: https://pi/ex\n" in text
    assert "Additional docs" not in text


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"directories": ["/a", "/a"]}, "/directories"),
        ({"directories": "/a"}, "/directories"),
        ({"directories": ["/a\n/b"]}, "/directories/0"),
        ({"directories": [""]}, "/directories/0"),
        ({"capabilities": ["Carrier Pigeon"]}, "/capabilities"),
        ({"capabilities": ["x" * 65]}, "/capabilities/0"),
        ({"documentation_main": "a\nb"}, "/documentation_main"),
    ],
)
def test_invalid_values_are_refused_by_field(admin: Api, deck: Deck, values: Any, pointer: str) -> None:
    etag = admin.get("agents/pilot")["ETag"]
    body = problem(admin.patch("agents/pilot", values, etag), 422, "invalid")
    assert {error["pointer"] for error in body["errors"]} == {pointer}


def test_a_revision_restores_the_lists(admin: Api, deck: Deck) -> None:
    first = patch_agent(admin, directories=["/b", "/a"], capabilities=[])["revision"]
    latest = patch_agent(admin, directories=[], capabilities=None)["revision"]
    agent = Agent.objects.in_workspace(deck.workspace).get(slug="pilot")
    restore_revision(agent, first, expected=latest, by=BY)
    agent.refresh_from_db()
    assert (agent.directories, agent.capabilities) == (["/b", "/a"], [])


def test_pins_cover_capabilities_directories_and_documentation(admin: Api, deck: Deck) -> None:
    pins = set()
    cases: list[dict[str, Any]] = [
        {},
        {"capabilities": []},
        {"capabilities": ["files"]},
        {"directories": ["/a"]},
        {"documentation_additional": "/docs"},
    ]
    for values in cases:
        patch_agent(admin, **{"capabilities": None, "directories": []} | values)
        agent = Agent.objects.in_workspace(deck.workspace).get(slug="pilot")
        [collected] = collect_inputs(deck.workspace, [agent], at=agent.updated_at)
        pins.add(build_pins(collected)["settings"])
    assert len(pins) == 5


def test_the_form_tells_an_empty_list_from_one_that_is_not_stated(as_bob: Any, deck: Deck) -> None:
    path = f"/w/{deck.workspace.slug}/agents/pilot/edit/"

    def post(**fields: str) -> Agent:
        agent = Agent.objects.in_workspace(deck.workspace).get(slug="pilot")
        values = {"name": "Pilot", "layout": "nova", "release_policy": "automatic"}
        answer = as_bob.post(path, values | {"revision": agent.revision} | fields)
        assert answer.status_code == 302, answer.content
        agent.refresh_from_db()
        return agent

    agent = post(directories=" /b \r\n\r\n/a\r\n", capabilities="", states_capabilities="yes")
    assert (agent.directories, agent.capabilities) == (["/b", "/a"], [])
    html = as_bob.get(path).content.decode()
    assert "/b\n/a</textarea>" in html
    assert '<option value="yes" selected>' in html
    assert post(states_capabilities="").capabilities is None
    assert post(states_capabilities="", capabilities="files").capabilities == ["files"]
    page = as_bob.get(f"/w/{deck.workspace.slug}/agents/pilot/").content.decode()
    assert "<dt>Capabilities</dt><dd>files" in page


def test_an_entry_that_is_invalid_is_named_on_the_form(as_bob: Any, deck: Deck) -> None:
    agent = Agent.objects.in_workspace(deck.workspace).get(slug="pilot")
    values = {"name": "Pilot", "layout": "nova", "release_policy": "automatic", "revision": agent.revision}
    path = f"/w/{deck.workspace.slug}/agents/pilot/edit/"
    answer = as_bob.post(path, values | {"capabilities": "files\nCarrier Pigeon", "directories": "/a\n/a"})
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "Use lowercase letters and digits" in html
    assert "“/a” is listed more than once. Remove the duplicates." in html
