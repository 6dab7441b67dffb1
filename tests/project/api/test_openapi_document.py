"""The OpenAPI document: names, texts and structure, with a planted fault for each rule."""

import re
from copy import deepcopy
from typing import Any

import pytest

from personas.agents.models import validate_capability
from personas.api.schema import (
    any_object_schema,
    enum_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.tools.models import validate_tool_name
from project.api.components import NamedSchemas
from project.api.docs_views import get_openapi_document, render_openapi
from project.api.headers import INTRODUCED_HEADERS
from project.api.introduction import TAG_DESCRIPTIONS
from tests.project.api import document_rules
from tests.project.api.document_rules import follow_reference

Document = dict[str, Any]
MAX_BYTES = 440_000


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


# --- components ------------------------------------------------------------------------------------------


def test_the_document_is_small(document: Document, capsys: pytest.CaptureFixture[str]) -> None:
    size, count = len(render_openapi()), len(list(document_rules.list_operations(document)))
    with capsys.disabled():
        print(f"\nOpenAPI document: {size:,} bytes, {count} operations, {size // count:,} bytes for each")
    assert size < MAX_BYTES


def test_objects_and_choices_are_named_components(document: Document) -> None:
    assert document_rules.find_anonymous_schemas(document) == []
    schemas = document["components"]["schemas"]
    assert {
        "Agent",
        "AgentInput",
        "AgentReplacement",
        "AgentPatch",
        "AgentPage",
        "Prompt",
        "TaskStep",
    } <= set(schemas)
    assert schemas["AgentPage"]["properties"]["items"]["items"] == {"$ref": "#/components/schemas/Agent"}
    assert schemas["Task"]["properties"]["status"] == {"$ref": "#/components/schemas/TaskStatus"}


def test_an_object_without_a_name_is_found(document: Document) -> None:
    body = document["paths"]["/api/v1/agents"]["post"]["requestBody"]
    body["content"]["application/json"]["schema"] = object_schema({"name": enum_schema(["a", "b"])})
    assert len(document_rules.find_anonymous_schemas(document)) == 2


def test_request_bodies_have_no_defaults(document: Document) -> None:
    assert document_rules.find_defaults_in_bodies(document) == []
    layout = document["components"]["schemas"]["AgentInput"]["properties"]["layout"]
    assert layout == {"$ref": "#/components/schemas/Layout", "description": 'Default: `"dramatis"`.'}


@pytest.mark.parametrize("name", ["AgentInput", "AgentPatch", "TaskStepInput", "LabelTarget"])
def test_a_default_in_a_request_body_is_found(document: Document, name: str) -> None:
    schema = document["components"]["schemas"][name]
    field = next(iter(schema["properties"]))
    schema["properties"][field] = {"type": "string", "default": "dramatis"}
    assert document_rules.find_defaults_in_bodies(document)


def test_arrays_say_what_they_contain(document: Document) -> None:
    assert document_rules.find_arrays_without_items(document) == []
    document["components"]["schemas"]["Agent"]["properties"]["tools"] = {"type": ["array", "null"]}
    assert document_rules.find_arrays_without_items(document) == [
        "/components/schemas/Agent/properties/tools"
    ]


def test_references_and_components_belong_together(document: Document) -> None:
    assert document_rules.find_unresolved_references(document) == []
    assert document_rules.find_unused_components(document) == []
    document["components"]["schemas"]["Spare"] = document["components"]["schemas"].pop("Channel")
    assert document_rules.find_unresolved_references(document)
    assert document_rules.find_unused_components(document) == ["#/components/schemas/Spare"]


def test_every_operation_documents_its_errors_and_response_headers(document: Document) -> None:
    for place, operation in document_rules.list_operations(document):
        assert operation["responses"]["4XX"] == {"$ref": "#/components/responses/Problem"}, place
    delete = document["paths"]["/api/v1/agents/{slug}"]["delete"]["responses"]
    assert delete["409"] == {"$ref": "#/components/responses/InUse"}
    fetch = document["paths"]["/api/v1/agents/{agent}/channels/{channel}/prompt"]["get"]["responses"]
    assert fetch["503"] == {"$ref": "#/components/responses/Unavailable"}
    create = follow_reference(document, document["paths"]["/api/v1/agents"]["post"]["responses"]["201"])
    assert set(create["headers"]) == {"ETag", "Location"}
    assert (
        "Link"
        in follow_reference(document, document["paths"]["/api/v1/agents"]["get"]["responses"]["200"])[
            "headers"
        ]
    )
    assert all(f"`{name}" in document["info"]["description"] for name in INTRODUCED_HEADERS)
    common = document["components"]["responses"]["Problem"]
    examples = common["content"]["application/problem+json"]["examples"]
    statuses = {example["value"]["status"] for example in examples.values()}
    assert statuses >= {400, 401, 403, 404, 409, 412, 422, 429}
    assert {"RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-ID"} <= set(common["headers"])


# --- descriptions ----------------------------------------------------------------------------------------


def test_every_operation_is_described_and_names_the_verb_of_its_key(document: Document) -> None:
    assert document_rules.find_undescribed_operations(document) == []
    assert document_rules.find_undescribed_schemes(document) == []
    verbs = {
        operation["operationId"]: document_rules.get_required_scope(document, operation)
        for _, operation in document_rules.list_operations(document)
    }
    expected = {"getPrompt": "fetch", "renderPrompt": "render", "getAgent": "read", "updateAgent": "write"}
    expected |= {"approveMemory": "approve", "createKey": "manage", "overrideRelease": "override"}
    assert verbs.items() >= expected.items()


def test_an_operation_without_a_description_is_found(document: Document) -> None:
    document["paths"]["/api/v1/agents"]["get"]["description"] = " "
    del document["paths"]["/api/v1/agents"]["post"]["description"]
    document["components"]["securitySchemes"]["readKey"]["description"] = "An API key."
    assert document_rules.find_undescribed_schemes(document) == ["readKey"]
    assert document_rules.find_undescribed_operations(document) == [
        "GET /api/v1/agents",
        "POST /api/v1/agents",
    ]


def test_parameters_are_described_and_say_what_they_are(document: Document) -> None:
    assert document_rules.find_undescribed_parameters(document) == []
    assert document_rules.find_vague_path_parameters(document) == []
    document["paths"]["/api/v1/agents/{key}"] = {"parameters": [{"name": "key", "in": "path"}]}
    assert document_rules.find_undescribed_parameters(document) == ["/api/v1/agents/{key} key"]
    assert document_rules.find_vague_path_parameters(document) == ["/api/v1/agents/{key}"]


def test_the_results_of_a_batch_have_a_discriminator(document: Document) -> None:
    result = document["components"]["schemas"]["BatchResult"]
    assert result["discriminator"]["propertyName"] == "status"
    assert sorted(result["discriminator"]["mapping"].values()) == sorted(
        option["$ref"] for option in result["oneOf"]
    )


# --- examples --------------------------------------------------------------------------------------------


def test_every_body_and_response_has_an_example_that_conforms_to_its_schema(document: Document) -> None:
    assert document_rules.find_missing_examples(document) == []
    assert document_rules.find_wrong_examples(document) == []


def test_a_missing_or_wrong_example_is_found(document: Document) -> None:
    del document["components"]["schemas"]["AgentInput"]["examples"]
    assert document_rules.find_missing_examples(document) == ["POST /api/v1/agents request"]
    del document["components"]["schemas"]["AuditEvent"]["examples"]
    assert "GET /api/v1/audit 200" in document_rules.find_missing_examples(document)
    document["components"]["schemas"]["Agent"]["examples"][0]["id"] = "first"
    assert any("$.id" in place for place in document_rules.find_wrong_examples(document))


# --- shared messages and schemas of responses -------------------------------------------------------------


def test_responses_and_bodies_that_several_operations_have_are_components(document: Document) -> None:
    paths = document["paths"]
    reference = {"$ref": "#/components/responses/Memory"}
    assert paths["/api/v1/memories/{id}:approve"]["post"]["responses"]["200"] == reference
    assert paths["/api/v1/memories/{id}"]["get"]["responses"]["200"] == reference
    assert set(follow_reference(document, reference)["headers"]) == {"ETag"}
    body = {"$ref": "#/components/requestBodies/RecordIds"}
    assert paths["/api/v1/agents:archive"]["post"]["requestBody"] == body


def test_responses_may_get_further_fields_and_requests_may_not(document: Document) -> None:
    schemas = document["components"]["schemas"]
    assert "additionalProperties" not in schemas["Agent"]
    assert schemas["AgentPatch"]["additionalProperties"] is False
    assert schemas["Agent"]["properties"]["name"] == {"type": "string"}
    assert schemas["AgentPatch"]["properties"]["name"]["maxLength"] == 80


def test_fields_have_the_patterns_that_their_models_check(document: Document) -> None:
    schemas = document["components"]["schemas"]
    patterns = [
        (validate_tool_name, schemas["ToolPatch"]["properties"]["name"]["pattern"]),
        (validate_capability, schemas["AgentPatch"]["properties"]["capabilities"]["items"]["pattern"]),
    ]
    for validator, pattern in patterns:
        assert re.compile(validator.regex).pattern == pattern.replace("^", r"\A", 1).removesuffix("$") + r"\Z"


def test_a_schema_extends_the_one_that_it_contains(document: Document) -> None:
    schemas = document["components"]["schemas"]
    detail = schemas["ContextFileDetail"]
    assert detail["allOf"] == [{"$ref": "#/components/schemas/ContextFile"}]
    assert {"text", "findings"} <= set(detail["properties"])
    assert not set(detail["properties"]) & set(schemas["ContextFile"]["properties"])
    assert schemas["TaskInput"]["allOf"] == [{"$ref": "#/components/schemas/TaskPatch"}]


# --- named schemas ---------------------------------------------------------------------------------------

STATE = enum_schema(["open", "closed"], title="State")
TICKET = object_schema({"state": STATE, "previous": nullable_schema(STATE)}, title="Ticket")


def test_a_schema_with_a_title_becomes_a_reference_also_where_it_is_nested() -> None:
    page = page_schema(TICKET)
    schemas = NamedSchemas([page])
    assert schemas.reference(page) == {"$ref": "#/components/schemas/TicketPage"}
    components = schemas.to_components()
    assert list(components) == ["State", "Ticket", "TicketPage"]
    reference = {"$ref": "#/components/schemas/State"}
    assert components["Ticket"]["properties"] == {
        "state": reference,
        "previous": {"anyOf": [reference, {"type": "null"}]},
    }


def test_descriptions_that_differ_stand_beside_the_references() -> None:
    now, then = STATE | {"description": "Now."}, STATE | {"description": "Then.", "default": "open"}
    schemas = NamedSchemas([object_schema({"now": now, "then": then}, title="Ticket")])
    reference = {"$ref": "#/components/schemas/State"}
    assert schemas.to_components()["Ticket"]["properties"] == {
        "now": reference | {"description": "Now."},
        "then": reference | {"description": "Then.", "default": "open"},
    }
    assert "description" not in schemas.to_components()["State"]
    alone = NamedSchemas([now])
    assert alone.reference(now) == reference
    assert alone.to_components()["State"]["description"] == "Now."


def test_two_different_schemas_cannot_have_one_name() -> None:
    with pytest.raises(ValueError, match="State"):
        NamedSchemas([STATE, enum_schema(["open"], title="State")])


def test_text_that_can_be_null_and_objects_with_arbitrary_fields_are_references() -> None:
    fields = {"owner": nullable_schema(slug_schema(description="Its owner.")), "data": any_object_schema()}
    components = NamedSchemas([object_schema(fields, title="Ticket")]).to_components()
    assert components["Ticket"]["properties"] == {
        "owner": {
            "anyOf": [{"$ref": "#/components/schemas/Slug"}, {"type": "null"}],
            "description": "Its owner.",
        },
        "data": {"$ref": "#/components/schemas/AnyObject"},
    }
    assert components["Slug"]["maxLength"] == 64


def test_texts_with_the_same_pattern_have_one_named_type_and_their_own_limits() -> None:
    schema = object_schema({"title": line_schema(80), "slug": slug_schema()}, title="Ticket")
    components = NamedSchemas([schema]).to_components()
    assert components["Ticket"]["properties"]["title"] == {
        "$ref": "#/components/schemas/Line",
        "maxLength": 80,
    }
    assert components["Line"]["pattern"] == line_schema(80)["pattern"]
    assert set(components) == {"Ticket", "Line", "Slug"}


def find_wrong_articles(document: Document) -> list[str]:
    """Return summaries such as “Read a agent”."""
    summaries = [operation["summary"] for _, operation in document_rules.list_operations(document)]
    wrong = re.compile(r"\ba (?=[aeiou])(?!uni|use|one)|\ban (?![aeiou]|HT|h)", re.IGNORECASE)
    return [summary for summary in summaries if wrong.search(summary)]


def test_summaries_have_the_right_article(document: Document) -> None:
    assert find_wrong_articles(document) == []
    _path, operation = next(document_rules.list_operations(document))
    operation["summary"] = "Read a agent"
    assert find_wrong_articles(document) == ["Read a agent"]
