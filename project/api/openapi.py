"""Build the OpenAPI document from the operations of the API views."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from django.urls import URLPattern

from personas.api.idempotency import IDEMPOTENCY_HEADER
from personas.api.operations import Operation
from personas.api.problems import PROBLEM_CONTENT_TYPE, PROBLEM_TITLES
from personas.api.request_body import PATCH_TYPES
from personas.api.schema import NAME_PATTERN, SLUG_PATTERN, Schema, integer_schema, object_schema
from personas.api.views import get_api_view
from project.api.introduction import TAG_DESCRIPTIONS, build_api_info

API_PREFIX = "/api/v1/"
PATH_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
CONVERTER_SCHEMAS: dict[str, Schema] = {
    "slug": {"type": "string", "pattern": SLUG_PATTERN, "maxLength": 64},
    "word": {"type": "string", "pattern": NAME_PATTERN, "maxLength": 64},
    "int": integer_schema(0, 2**31 - 1),
    "str": {"type": "string", "minLength": 1},
    "path": {"type": "string", "minLength": 1, "maxLength": 1_000},
    "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
FIELD_ERROR_SCHEMA = object_schema(
    {
        "detail": {"type": "string"},
        "pointer": {"type": "string", "description": "A JSON pointer into the body."},
        "parameter": {"type": "string"},
        "header": {"type": "string"},
    },
    required=["detail"],
)
PROBLEM_SCHEMA = object_schema(
    {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": sorted(PROBLEM_TITLES)},
        "request_id": {"type": "string"},
        "errors": {"type": "array", "items": {"$ref": "#/components/schemas/FieldError"}},
    },
    required=["type", "title", "status", "detail", "code", "request_id"],
)
# Problem codes by HTTP status: those that every operation can return, then those of operations with a request
# body, an Idempotency-Key or an If-Match header.
COMMON_PROBLEMS = {
    400: "bad_request",
    401: "bad_key",
    403: "out_of_scope",
    406: "not_acceptable",
    429: "rate_limited",
}
COMMON_PROBLEMS |= {500: "server_error", 503: "unavailable"}
BODY_PROBLEMS = {408: "body_timeout", 413: "body_too_large", 415: "unsupported_media_type", 422: "invalid"}
IDEMPOTENCY_PROBLEMS = {409: "in_progress", 422: "key_reused"}
PRECONDITION_PROBLEMS = {412: "precondition_failed", 428: "precondition_required"}


def build_openapi_document(patterns: Iterable[URLPattern], server: str) -> dict[str, Any]:
    """Return the OpenAPI document for these URL patterns."""
    paths: dict[str, dict[str, Any]] = {}
    for pattern in patterns:
        if operations := get_operations(pattern):
            paths[API_PREFIX + get_openapi_path(pattern)] = build_path_item(pattern, operations)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": build_api_info(server),
        "servers": [{"url": server}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": TAG_DESCRIPTIONS[name]} for name in list_tags(paths)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key: drm_bot_… or drm_admin_…"}
            },
            "schemas": {"Problem": PROBLEM_SCHEMA, "FieldError": FIELD_ERROR_SCHEMA},
        },
    }


def get_operations(pattern: URLPattern) -> Mapping[str, Operation]:
    """Return the operations of a view by HTTP method.

    A view function, which is not derived from ApiView, has them in its `operations` attribute.
    """
    view = get_api_view(pattern)
    return view.operations if view else getattr(pattern.callback, "operations", {})


def get_openapi_path(pattern: URLPattern) -> str:
    return PATH_PARAMETER.sub(r"{\2}", str(pattern.pattern))


def build_path_item(pattern: URLPattern, operations: Mapping[str, Operation]) -> dict[str, Any]:
    parameters = [
        build_path_parameter(kind, name) for kind, name in PATH_PARAMETER.findall(str(pattern.pattern))
    ]
    item: dict[str, Any] = {
        method.lower(): build_operation(method, pattern, operation)
        for method, operation in operations.items()
    }
    return ({"parameters": parameters} if parameters else {}) | item


def build_path_parameter(kind: str, name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": CONVERTER_SCHEMAS[kind or "str"]}


def build_operation(method: str, pattern: URLPattern, operation: Operation) -> dict[str, Any]:
    document: dict[str, Any] = {
        "operationId": operation.operation_id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": build_responses(pattern, operation),
    }
    if operation.note:
        document["description"] = operation.note
    if parameters := [*list_query_parameters(operation), *list_header_parameters(operation)]:
        document["parameters"] = parameters
    if operation.body is not None:
        content: dict[str, Any] = {"schema": operation.body}
        content |= {"example": operation.body_example} if operation.body_example is not None else {}
        types = sorted(PATCH_TYPES) if method == "PATCH" else [operation.body_type]
        document["requestBody"] = {"required": True, "content": dict.fromkeys(types, content)}
    return document


def list_query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": name in operation.required_params, "schema": schema}
        for name, schema in operation.query.items()
    ]


def list_header_parameters(operation: Operation) -> list[dict[str, Any]]:
    headers = []
    if operation.is_conditional or operation.can_create:
        description = "The ETag of what you have seen, or * for whatever exists."
        is_required = operation.is_conditional and not operation.can_create
        headers.append(build_header_parameter("If-Match", description, required=is_required))
    if operation.can_create:
        headers.append(build_header_parameter("If-None-Match", "*, to create what does not exist."))
    if any(status == 304 for status, _ in operation.extra_responses):
        headers.append(
            build_header_parameter("If-None-Match", "The ETags of what you have: 304 if one fits.")
        )
    if operation.is_retryable:
        description = "A word of your choice; sent again with the same body, the first answer is given again."
        headers.append(
            build_header_parameter(
                IDEMPOTENCY_HEADER, description, schema={"type": "string", "pattern": r"^[!-~]{1,255}$"}
            )
        )
    return headers


def build_header_parameter(
    name: str, description: str, *, required: bool = False, schema: Schema | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": description,
        "schema": schema or {"type": "string", "minLength": 1},
    }


def build_responses(pattern: URLPattern, operation: Operation) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done." if operation.status == 204 else operation.summary + "."}
    if operation.answer is not None:
        content: dict[str, Any] = {"schema": operation.answer}
        content |= {"example": operation.example} if operation.example is not None else {}
        success["content"] = {"application/json": content}
    if operation.extra_content:
        success["content"] = {**success.get("content", {}), **operation.extra_content}
    responses = {str(operation.status): success}
    if operation.can_create:
        responses["201"] = {**success, "description": "Created."}
    responses |= {str(status): dict(response) for status, response in operation.extra_responses}
    for status, code in sorted(get_problem_codes(pattern, operation).items()):
        responses.setdefault(str(status), build_problem_response(status, code))
    return responses


def get_problem_codes(pattern: URLPattern, operation: Operation) -> dict[int, str]:
    codes = dict(COMMON_PROBLEMS)
    if operation.query:
        codes[422] = "invalid"
    if operation.body is not None:
        codes |= BODY_PROBLEMS
    if operation.is_retryable:
        codes = IDEMPOTENCY_PROBLEMS | codes
    if operation.permission.value != "read" or operation.body is not None:
        codes.setdefault(409, "refused")
        codes.setdefault(422, "invalid")
        codes.setdefault(410, "erased")
    if operation.is_conditional:
        codes |= PRECONDITION_PROBLEMS
    if PATH_PARAMETER.search(str(pattern.pattern)):
        codes[404] = "not_found"
    return codes | dict(operation.refusals)


@cache
def build_problem_response(status: int, code: str) -> dict[str, Any]:
    example = {
        "type": f"{API_PREFIX}docs/errors#{code}",
        "title": PROBLEM_TITLES[code],
        "status": status,
        "detail": PROBLEM_TITLES[code] + ".",
        "code": code,
        "request_id": "0e0f4f5c-8a55-4d3c-9a3f-2c7d5a0f1b7e",
    }
    content = {PROBLEM_CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}}
    return {"description": PROBLEM_TITLES[code] + ".", "content": content}


def list_tags(paths: Mapping[str, Mapping[str, Any]]) -> list[str]:
    tags: dict[str, None] = {}
    for item in paths.values():
        for method in item.values():
            if isinstance(method, dict):
                tags |= dict.fromkeys(method["tags"])
    return list(tags)
