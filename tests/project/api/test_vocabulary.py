"""The names in the API have one spelling, with a planted fault for each rule."""

from copy import deepcopy
from typing import Any

import pytest

from project.api.docs_views import PROBLEM_ADVICE, get_openapi_document
from tests.project.api import vocabulary_rules
from tests.project.api.document_rules import follow_reference

Document = dict[str, Any]
AGENTS = "/api/v1/agents"


@pytest.fixture
def document() -> Document:
    """A copy of the document, which a test may change."""
    return deepcopy(get_openapi_document())


def test_paths_have_one_spelling(document: Document) -> None:
    assert vocabulary_rules.find_odd_paths(document) == []


@pytest.mark.parametrize(
    "path", ["/souls/{key}", "/souls:hand-out", "/found_skills", "/souls/{slug}:Restore"]
)
def test_a_path_with_another_spelling_is_found(document: Document, path: str) -> None:
    document["paths"][f"/api/v1{path}"] = {}
    assert vocabulary_rules.find_odd_paths(document) == [f"/api/v1{path}"]


def test_what_belongs_to_a_channel_is_below_its_path(document: Document) -> None:
    assert vocabulary_rules.find_scattered_paths(document) == []
    assert "/api/v1/agents/{agent}/channels/{channel}/labels" in document["paths"]
    document["paths"]["/api/v1/agents/{agent}/prompts/{channel}/labels"] = {}
    assert vocabulary_rules.find_scattered_paths(document) == [
        "/api/v1/agents/{agent}/prompts/{channel}/labels"
    ]


def test_fields_have_one_spelling(document: Document) -> None:
    assert vocabulary_rules.find_odd_fields(document) == []


@pytest.mark.parametrize("name", ["moment", "createdAt", "created-at"])
def test_a_field_with_another_spelling_is_found(document: Document, name: str) -> None:
    document["components"]["schemas"]["Planted"] = {"properties": {name: {"format": "date-time"}}}
    assert len(vocabulary_rules.find_odd_fields(document)) == 1


def test_every_problem_code_has_advice(document: Document) -> None:
    assert set(document["components"]["schemas"]["ProblemCode"]["enum"]) == set(PROBLEM_ADVICE)


def test_lists_have_items_and_a_cursor(document: Document) -> None:
    assert vocabulary_rules.find_odd_lists(document) == []
    response = document["paths"][AGENTS]["get"]["responses"]["200"]
    content = follow_reference(document, response)["content"]
    content["application/json"]["schema"] = {"properties": {"data": {}}}
    assert vocabulary_rules.find_odd_lists(document) == [f"GET {AGENTS}"]
