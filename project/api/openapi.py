"""Build the OpenAPI document from the operations of the API views."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.urls import URLPattern

from personas.api.operations import Operation
from personas.api.problems import PROBLEM_SCHEMA
from personas.api.schema import Schema, to_camel_case
from personas.api.views import get_api_view
from personas.events.api import EVENT_ENVELOPE_SCHEMA
from personas.events.types import EVENT_TYPES
from project.api.components import NamedSchemas, map_subschemas
from project.api.descriptions import OPERATION_DESCRIPTIONS, PARAMETER_DESCRIPTIONS
from project.api.example_values import RESPONSE_EXAMPLES
from project.api.examples import build_body_example, build_response_example
from project.api.headers import (
    build_header_components,
    build_header_parameters,
    list_request_headers,
    list_response_headers,
    reference_headers,
)
from project.api.introduction import TAG_DESCRIPTIONS, build_api_info
from project.api.path_parameters import get_openapi_path, list_path_parameters
from project.api.problem_responses import ProblemResponses
from project.api.shared_components import (
    add_field_patterns,
    derive_input_schemas,
    relax_response_schemas,
    share_messages,
)

API_PREFIX = "/api/v1/"
# Parameters that are left out of the document. With `fields`, a response lacks fields that its schema
# requires. Without it in the document, the types of generated clients are exact.
UNLISTED_PARAMS = frozenset({"fields"})
# The security scheme of most operations. The others name their own.
DEFAULT_SECURITY = "adminWriteKey"
# A parameter becomes a component if at least this many operations have it in the same form.
MIN_SHARED_USES = 2


def build_openapi_document(patterns: Iterable[URLPattern], server: str) -> dict[str, Any]:
    """Return the OpenAPI document for these URL patterns."""
    return DocumentBuilder(patterns).build(server)


def get_operations(pattern: URLPattern) -> Mapping[str, Operation]:
    """Return the operations of a view by HTTP method.

    A view function, which is not derived from ApiView, has them in its `operations` attribute.
    """
    view = get_api_view(pattern)
    return view.operations if view else getattr(pattern.callback, "operations", {})


class DocumentBuilder:
    """Builds paths and components together: an operation refers to schemas, parameters and responses."""

    def __init__(self, patterns: Iterable[URLPattern]) -> None:
        self.patterns = [pattern for pattern in patterns if get_operations(pattern)]
        self.operations = [
            operation for pattern in self.patterns for operation in get_operations(pattern).values()
        ]
        self.schemas = NamedSchemas(
            [
                PROBLEM_SCHEMA,
                *list_event_schemas().values(),
                *(schema for operation in self.operations for schema in list_schemas(operation)),
            ]
        )
        self.examples = build_schema_examples(self.operations)
        self.problems = ProblemResponses()
        self.header_parameters = build_header_parameters()
        self.shared_parameters = self.find_shared_parameters()

    def build(self, server: str) -> dict[str, Any]:
        paths = {
            API_PREFIX + get_openapi_path(pattern): self.build_path_item(pattern) for pattern in self.patterns
        }
        document = {
            "openapi": "3.1.0",
            "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
            "info": build_api_info(server),
            "servers": [{"url": server}],
            "security": [{DEFAULT_SECURITY: []}],
            "tags": [{"name": name, "description": TAG_DESCRIPTIONS[name]} for name in list_tags(paths)],
            "paths": paths,
            "webhooks": self.build_webhooks(),
            "components": {
                "securitySchemes": build_security_schemes(self.operations),
                "schemas": self.schemas.to_components(self.examples),
                "parameters": {**self.header_parameters, **self.shared_parameters},
                "headers": build_header_components(self.operations),
                "responses": self.problems.to_components(self.schemas),
            },
        }
        relax_response_schemas(document)
        add_field_patterns(document)
        derive_input_schemas(document)
        share_messages(document)
        return document

    def build_webhooks(self) -> dict[str, Any]:
        """Return the section `webhooks`: the request that a receiver gets, for each type of event."""
        responses = {"2XX": {"description": "Received"}}
        return {
            name: {
                "post": {
                    "operationId": f"receive{to_camel_case(re.sub(r'[._]', ' ', name))}",
                    "summary": EVENT_TYPES[name].description,
                    "requestBody": {
                        "content": {"application/json": {"schema": self.schemas.reference(schema)}}
                    },
                    "responses": responses,
                }
            }
            for name, schema in list_event_schemas().items()
        }

    # --- paths --------------------------------------------------------------------------------------------

    def build_path_item(self, pattern: URLPattern) -> dict[str, Any]:
        named = self.list_path_parameters(pattern)
        parameters = [self.reference_parameter(name, parameter) for name, parameter in named]
        item: dict[str, Any] = {
            method.lower(): self.build_operation(pattern, operation)
            for method, operation in get_operations(pattern).items()
        }
        return ({"parameters": parameters} if parameters else {}) | item

    def build_operation(self, pattern: URLPattern, operation: Operation) -> dict[str, Any]:
        security = get_security_scheme(operation)
        document: dict[str, Any] = {
            "operationId": operation.operation_id,
            "summary": operation.summary,
            "description": build_description(operation),
            **({"deprecated": True} if operation.deprecated_at else {}),
            **({} if security == DEFAULT_SECURITY else {"security": [{security: []}]}),
            "tags": [operation.tag],
            "responses": self.build_responses(pattern, operation),
        }
        query = [
            self.reference_parameter(get_component_name(parameter), parameter)
            for parameter in self.list_query_parameters(operation)
        ]
        headers = [{"$ref": f"#/components/parameters/{name}"} for name in list_request_headers(operation)]
        if query or headers:
            document["parameters"] = query + headers
        if operation.body is not None:
            content: dict[str, Any] = {"schema": self.schemas.reference(get_body_schema(operation))}
            if operation.body_example is not None:
                content["example"] = operation.body_example
            # PATCH also accepts merge-patch+json. It is not listed: some generators cannot handle two types.
            document["requestBody"] = {"required": True, "content": {operation.body_type: content}}
        return document

    # --- parameters ---------------------------------------------------------------------------------------

    def list_path_parameters(self, pattern: URLPattern) -> list[tuple[str, dict[str, Any]]]:
        return [
            (name, parameter | {"schema": self.schemas.reference(parameter["schema"])})
            for name, parameter in list_path_parameters(pattern)
        ]

    def list_query_parameters(self, operation: Operation) -> list[dict[str, Any]]:
        return [
            self.build_query_parameter(name, schema, is_required=name in operation.required_params)
            for name, schema in operation.query.items()
            if name not in UNLISTED_PARAMS
        ]

    def build_query_parameter(self, name: str, schema: Schema, *, is_required: bool) -> dict[str, Any]:
        inner = {key: value for key, value in schema.items() if key != "description"}
        return {
            "name": name,
            "in": "query",
            **({"required": True} if is_required else {}),
            "description": schema.get("description") or PARAMETER_DESCRIPTIONS[name],
            "schema": self.schemas.reference(inner),
        }

    def find_shared_parameters(self) -> dict[str, Any]:
        """Return the parameters that are components. Of several with one name, the most frequent is."""
        uses: Counter[str] = Counter()
        for pattern in self.patterns:
            uses.update(json.dumps(named) for named in self.list_path_parameters(pattern))
            for operation in get_operations(pattern).values():
                query = self.list_query_parameters(operation)
                uses.update(json.dumps([get_component_name(parameter), parameter]) for parameter in query)
        shared: dict[str, Any] = {}
        for text, count in uses.most_common():
            name, parameter = json.loads(text)
            if count >= MIN_SHARED_USES:
                shared.setdefault(name, parameter)
        return shared

    def reference_parameter(self, name: str, parameter: dict[str, Any]) -> dict[str, Any]:
        if self.shared_parameters.get(name) == parameter:
            return {"$ref": f"#/components/parameters/{name}"}
        return parameter

    # --- responses ----------------------------------------------------------------------------------------

    def build_responses(self, pattern: URLPattern, operation: Operation) -> dict[str, Any]:
        headers = reference_headers(list_response_headers(operation))
        success: dict[str, Any] = {"description": HTTPStatus(operation.status).phrase}
        success |= {"headers": headers} if headers else {}
        if operation.answer is not None:
            content: dict[str, Any] = {"schema": self.schemas.reference(get_answer_schema(operation))}
            if (example := get_response_example(operation)) is not None:
                content["example"] = example
            success["content"] = {"application/json": content}
        if operation.extra_content:
            extra = self.reference_content({"content": operation.extra_content})
            success["content"] = {**success.get("content", {}), **extra["content"]}
        responses = {str(operation.status): success}
        if operation.can_create:
            responses["201"] = {**success, "description": "Created"}
        for status, response in operation.extra_responses:
            responses[str(status)] = {**self.reference_content(response), "headers": headers}
        return self.problems.reference(pattern, operation) | responses

    def reference_content(self, response: Mapping[str, Any]) -> dict[str, Any]:
        content = {
            kind: {**media, "schema": self.schemas.reference(media["schema"])}
            for kind, media in response.get("content", {}).items()
        }
        return {**response, **({"content": content} if content else {})}


def list_event_schemas() -> dict[str, Schema]:
    """Return the schema of the body of each type of event. Types with the same data have the same schema."""
    return {
        name: {
            "title": event_type.data.title.removesuffix("Data"),
            "allOf": [EVENT_ENVELOPE_SCHEMA],
            "properties": {"data": event_type.data.schema},
            "required": ["data"],
        }
        for name, event_type in EVENT_TYPES.items()
    }


def get_component_name(parameter: Mapping[str, Any]) -> str:
    """Return the name of a query parameter as a component: `AgentFilter` for `agent`, `Limit` for `limit`."""
    name = to_camel_case(parameter["name"].replace("_", " "))
    return name if name in {"Limit", "Cursor", "Q"} else f"{name}Filter"


def get_description(operation: Operation) -> str:
    return operation.note or OPERATION_DESCRIPTIONS.get(operation.operation_id, "")


def build_description(operation: Operation) -> str:
    parts = [
        get_description(operation),
        "Read-only fields may be sent back unchanged." if operation.read_only_fields else "",
        describe_deprecation(operation),
    ]
    return " ".join(filter(None, parts))


def describe_deprecation(operation: Operation) -> str:
    if not operation.deprecated_at:
        return ""
    until = f" and may be removed on {operation.sunset_at}" if operation.sunset_at else ""
    successor = f" Use `{API_PREFIX}{operation.successor}`." if operation.successor else ""
    return f"Deprecated since {operation.deprecated_at}{until}.{successor}"


def get_security_scheme(operation: Operation) -> str:
    """Return the name of the key that an operation needs: `readKey`, `adminWriteKey`, or `anyKey`."""
    verb = operation.required_verb or "any"
    return f"{verb}Key" if operation.bots or not operation.required_verb else f"admin{verb.title()}Key"


def build_security_schemes(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return a security scheme for each kind of key and verb. API keys have verbs in place of scopes."""
    schemes = {get_security_scheme(operation): operation for operation in operations}
    return {
        name: {
            "type": "http",
            "scheme": "bearer",
            "description": describe_key(operation),
            "x-required-scope": operation.required_verb,
        }
        for name, operation in sorted(schemes.items())
    }


def describe_key(operation: Operation) -> str:
    if not operation.required_verb:
        return "Requires no verb."
    return f"Requires `{operation.required_verb}`{'.' if operation.bots else ', admin keys only.'}"


def build_schema_examples(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return examples by title for the schemas of bodies and responses without an example of their own.

    Of a page or list, the schema of the items has the example.
    """
    examples = {}
    for operation in operations:
        body, answer = get_body_schema(operation), get_answer_schema(operation)
        answer = get_item_schema(answer) or answer
        if "title" in body and operation.body_example is None:
            examples[body["title"]] = build_body_example(body)
        if "title" in answer and operation.example is None:
            examples[answer["title"]] = build_response_example(answer)
        for media in operation.extra_content.values():
            if "title" in media["schema"]:
                examples[media["schema"]["title"]] = build_response_example(media["schema"])
    return examples


def get_item_schema(schema: Schema) -> Schema | None:
    """Return the named schema of the items, if this is the schema of a page or list."""
    fields = schema.get("properties", {})
    item: Schema = fields.get("items", {}).get("items", {})
    return item if set(fields) <= {"items", "next_cursor"} and "title" in item else None


def get_response_example(operation: Operation) -> Any:
    if operation.example is not None:
        return operation.example
    return RESPONSE_EXAMPLES.get(operation.operation_id)


def list_schemas(operation: Operation) -> list[Schema]:
    """Return the schemas of an operation: body, response, other responses and parameters."""
    schemas = [get_body_schema(operation), get_answer_schema(operation)]
    for content in (
        operation.extra_content,
        *(more.get("content", {}) for _, more in operation.extra_responses),
    ):
        schemas += [media["schema"] for media in content.values()]
    return [*schemas, *operation.query.values()]


def get_body_schema(operation: Operation) -> Schema:
    return name_schema_of(operation, describe_defaults(operation.body or {}), "Request")


def describe_defaults(schema: Schema) -> Schema:
    """Return the schema of a body with the defaults in the descriptions of its fields.

    Generators of clients treat fields with a default as required, or send the default.
    """
    changed = map_subschemas(schema, describe_defaults)
    if "default" not in changed:
        return changed
    default = changed.pop("default")
    text = f"Default: `{json.dumps(default)}`."
    return changed | {"description": f"{schema['description']} {text}" if "description" in schema else text}


def get_answer_schema(operation: Operation) -> Schema:
    return name_schema_of(operation, operation.answer or {}, "Response")


def name_schema_of(operation: Operation, schema: Schema, suffix: str) -> Schema:
    """Return the schema with a title derived from the operation id, if it is an object without a title."""
    if "title" in schema or "properties" not in schema:
        return schema
    name = operation.operation_id[:1].upper() + operation.operation_id[1:]
    return {"title": f"{name}{suffix}", **schema}


def list_tags(paths: Mapping[str, Mapping[str, Any]]) -> list[str]:
    tags: dict[str, None] = {}
    for item in paths.values():
        for method in item.values():
            if isinstance(method, dict):
                tags |= dict.fromkeys(method["tags"])
    return list(tags)
