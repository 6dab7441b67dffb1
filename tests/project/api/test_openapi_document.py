"""The OpenAPI document: names, texts and structure, with a planted fault for each rule."""

from copy import deepcopy
from typing import Any

import pytest

from project.api.docs_views import get_openapi_document
from project.api.introduction import TAG_DESCRIPTIONS
from tests.project.api import document_rules

Document = dict[str, Any]


@pytest.fixture
def document() -> Document:
    """A copy of the document, which a test may change."""
    return deepcopy(get_openapi_document())


def test_operation_ids_are_unique_and_consist_of_a_verb_and_a_noun(document: Document) -> None:
    assert document_rules.find_bad_operation_ids(document) == []
    ids = {operation["operationId"] for _, operation in document_rules.list_operations(document)}
    expected = "getPrompt listMemories createAgent updateAgent replaceAgent archiveAgent restoreAgentRevision"
    assert set(expected.split()) <= ids
    assert {"removeResponsibility", "getUserProfile", "listUserProfiles", "listIdentityRevisions"} <= ids


@pytest.mark.parametrize("name", ["", "agents-one-get", "GetAgent", "get", "agentGet", "listAgents"])
def test_an_operation_id_of_another_form_or_used_twice_is_found(document: Document, name: str) -> None:
    document["paths"]["/api/v1/agents"]["post"]["operationId"] = name
    assert document_rules.find_bad_operation_ids(document)


def test_texts_have_the_right_articles(document: Document) -> None:
    assert document_rules.find_wrong_articles(document) == []


@pytest.mark.parametrize("phrase", ["a agent", "a identity", "an soul"])
def test_a_wrong_article_is_found(document: Document, phrase: str) -> None:
    document["paths"]["/api/v1/agents"]["post"]["summary"] = f"Get {phrase}"
    assert document_rules.find_wrong_articles(document) == [f"/paths//api/v1/agents/post/summary: {phrase}"]


def test_every_tag_is_described_and_used(document: Document) -> None:
    assert document_rules.find_undescribed_tags(document) == []
    assert {tag["name"] for tag in document["tags"]} == set(TAG_DESCRIPTIONS)
    document["tags"] = document["tags"][1:]
    assert document_rules.find_undescribed_tags(document)


def test_the_document_names_its_licence_and_a_contact_of_the_installation(
    document: Document, settings: Any
) -> None:
    info = document["info"]
    assert info["license"] == {"name": "MIT", "identifier": "MIT"}
    assert info["contact"]["url"] == f"{settings.PUBLIC_URL}/api/v1/docs/"
    assert document["servers"] == [{"url": settings.PUBLIC_URL}]
