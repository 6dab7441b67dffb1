"""Values that the schema allows are accepted: names, numbers, control characters and conditions."""

from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from personas.actors import Actor
from personas.api.schema import FILE_PATTERN, LINE_PATTERN, NONBLANK_PROSE_PATTERN
from personas.api.validation import build_validator, describe_pattern_error
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.models import User, Workspace
from project.api.docs_views import get_openapi_document
from tests.api_client import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(workspace: Workspace, alice: User) -> Api:
    verbs = {"verbs": ["read", "write", "manage"]}
    _, secret = create_key(workspace, "Admin", verbs, by=Actor.person(alice), kind=ADMIN)
    return Api(secret, Client())


@pytest.mark.parametrize(
    ("name", "slug"), [("not_found", "not-found"), ("_a _ b__", "a-b"), ("___", "identity")]
)
def test_a_slug_is_derived_from_a_name_with_underscores(api: Api, name: str, slug: str) -> None:
    response = api.post("identities", {"name": name})
    assert (response.status_code, response.json()["slug"]) == (201, slug)


def test_sample_data_keeps_control_characters(api: Api) -> None:
    values = {"a\x88": "\x7f\x9f\n", "ü": ["\u2028"]}
    etag = api.get("prompt-settings/workspace")["ETag"]
    response = api.call("PUT", "prompt-settings/workspace", {"sample_data": values}, If_Match=etag)
    assert (response.status_code, response.json()["sample_data"]) == (200, values)


def test_a_limit_may_be_written_as_10_0(api: Api) -> None:
    etag = api.get("rule-sets/plain")["ETag"]
    response = api.call("PUT", "rule-sets/plain", {"rules": [], "caps": {"files": 10.0}}, If_Match=etag)
    assert response.status_code == 200, response.content
    assert type(response.json()["caps"]["files"]) is int


def test_an_error_about_a_control_character_names_its_line() -> None:
    assert describe_pattern_error(FILE_PATTERN, "a\r\nb\n\x02") == (
        "Line 3: The character U+0002 is not allowed."
    )
    assert describe_pattern_error(NONBLANK_PROSE_PATTERN, " \n") == "Must not be empty."
    assert describe_pattern_error(LINE_PATTERN, "a\x02") == "Contains characters that are not allowed."


def list_invalid(title: str, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the bodies that the document does not allow, checked by a validator of all keywords."""
    document = get_openapi_document()
    schema = {"$ref": f"#/components/schemas/{title}", "components": document["components"]}
    return [body for body in bodies if not Draft202012Validator(schema).is_valid(body)]


# Bodies by the title of their schema: those that it allows, and those that it does not.
CONDITIONS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "SourceInput": (
        [{"name": "A", "kind": "pushed"}, {"name": "A", "allowed_folder": "/srv"}],
        [
            {"name": "A"},
            {"name": "A", "kind": "folder", "allowed_folder": None},
            {"name": "A", "kind": "pushed", "refresh_minutes": 5},
            {"name": "A", "kind": "pushed", "allow_hard_links": True},
        ],
    ),
    "ToolInput": ([{"name": "read"}, {"agent": "mira"}], [{}, {"agent": None}]),
    "AgentContextInput": (
        [{"harness": "pi", "source": None}, {"harness": "pi", "sources": []}],
        [{"harness": "pi"}, {"harness": "pi", "source": None, "sources": []}],
    ),
    "ApiKeyInput": (
        [
            {"name": "A", "scopes": {"verbs": ["write", "activate"]}},
            {"name": "A", "kind": "admin", "scopes": {"verbs": ["manage"]}},
        ],
        [
            {"name": "A", "scopes": {"verbs": ["manage"]}},
            {"name": "A", "scopes": {"verbs": ["activate"]}},
            {"name": "A", "kind": "admin", "scopes": {"verbs": ["write", "activate"]}},
        ],
    ),
    "SkillAssignment": (
        [{"scope": "selected", "agents": ["mira"]}, {"scope": "all"}],
        [{"scope": "selected"}, {"scope": "all", "agents": ["mira"]}],
    ),
    "SkillMetadataInput": ([{"author": "a: b"}], [{"a:b": "c"}]),
    "MemoryFileEntry": ([{"content": "T"}], [{"source": "a"}]),
    "RecordDraft": (
        [{"kind": "soul", "key": "calm", "values": {"text": "T"}}, {"kind": "soul", "values": {"name": "N"}}],
        [{"kind": "soul", "values": {}}, {"kind": "soul", "key": "calm", "values": {"emoji": "!"}}],
    ),
}


@pytest.mark.parametrize("title", CONDITIONS)
def test_the_document_states_which_fields_go_together(title: str) -> None:
    allowed, forbidden = CONDITIONS[title]
    assert list_invalid(title, allowed) == []
    assert list_invalid(title, forbidden) == forbidden


def test_conditions_are_left_to_services() -> None:
    """Their messages name the field."""
    schema = {"type": "object", "if": {"required": ["a"]}, "else": {"required": ["b"]}}
    assert list(build_validator(schema).iter_errors({})) == []
