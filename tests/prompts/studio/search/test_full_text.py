"""The palette searches the texts of records, offers all matches, and never shows erased records."""

from typing import Any

import pytest

from personas.models import Workspace
from prompts.evidence.erasure.services import erase_record
from prompts.studio.search.search import MAX_PER_KIND
from tests.factories import BY, make_agent, make_memory, make_responsibility, make_skill, make_soul

pytestmark = pytest.mark.django_db


def find(client: Any, workspace: Workspace, text: str) -> list[dict[str, str]]:
    results: list[dict[str, str]] = client.get(f"/w/{workspace.slug}/find/", {"q": text}).json()["results"]
    return results


def test_a_word_of_a_text_finds_its_record(as_alice, workspace):
    agent = make_agent(workspace, "pilot", instructions="Never use exclamation marks.")
    make_soul(workspace, "Calm", text="Prefer a full stop to an exclamation mark.")
    make_responsibility(agent, "Watch", text="Count each exclamation.")
    make_skill(workspace, "knots", body="An exclamation is not a knot.")
    results = find(as_alice, workspace, "exclamation")
    labels = {result["label"] for result in results if result["hint"] == "found in the text"}
    assert labels == {"Pilot", "Calm", "Watch", "knots"}


def test_names_come_before_texts(as_alice, workspace):
    make_soul(workspace, "Anchor", text="Nothing.")
    for number in range(MAX_PER_KIND + 2):
        make_soul(workspace, f"A{number}", text="Drop the anchor.")
    souls = [result["label"] for result in find(as_alice, workspace, "anchor") if "/souls/" in result["url"]]
    assert souls[0] == "Anchor"


def test_the_list_with_all_matches_is_offered(as_alice, workspace):
    for number in range(MAX_PER_KIND + 2):
        make_soul(workspace, f"Anchor {number}", text="Calm.")
    [more] = [
        result for result in find(as_alice, workspace, "anchor") if result["label"] == "All matches in Souls"
    ]
    page = as_alice.get(more["url"])
    assert page.context["page"].paginator.count == MAX_PER_KIND + 2


def test_erased_records_are_not_offered(as_alice, workspace):
    erase_record(make_memory(workspace, "Ann lives here."), reason="Requested.", by=BY)
    assert not [result for result in find(as_alice, workspace, "erased") if "/memories/" in result["url"]]
