"""The OpenAPI document, made from the very operations that answer."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from django.urls import URLPattern

from personas.api.idempotency import HEADER
from personas.api.operations import Operation
from personas.api.problems import CONTENT_TYPE, TITLES
from personas.api.schema import SLUG, WORD, Shape, shape, whole
from personas.api.views import view_of

PREFIX = "/api/v1/"
PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
KINDS: dict[str, Shape] = {
    "slug": {"type": "string", "pattern": SLUG, "maxLength": 64},
    "word": {"type": "string", "pattern": WORD, "maxLength": 64},
    "int": whole(0, 2**31 - 1),
    "str": {"type": "string", "minLength": 1},
    "path": {"type": "string", "minLength": 1, "maxLength": 1_000},
    "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
FIELD_ERROR = shape(
    {
        "detail": {"type": "string"},
        "pointer": {"type": "string", "description": "A JSON pointer into the body."},
        "parameter": {"type": "string"},
        "header": {"type": "string"},
    },
    required=["detail"],
)
PROBLEM = shape(
    {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": sorted(TITLES)},
        "request_id": {"type": "string"},
        "errors": {"type": "array", "items": {"$ref": "#/components/schemas/FieldError"}},
    },
    required=["type", "title", "status", "detail", "code", "request_id"],
)
# What may go wrong at every address, and what with certain kinds of operation.
ALWAYS = {400: "bad_request", 401: "bad_key", 403: "out_of_scope", 406: "not_acceptable", 429: "rate_limited"}
ALWAYS |= {500: "server_error", 503: "unavailable"}
WITH_BODY = {413: "body_too_large", 415: "unsupported_media_type", 422: "invalid"}
RETRYABLE = {409: "in_progress", 422: "key_reused"}
CONDITIONAL = {412: "precondition_failed", 428: "precondition_required"}
DESCRIPTION = """The programs' door of Dramatis: bots fetch prompts, write memories, tick task steps and load
skills; scripts manage everything else. Keys go into the Authorization header. The guide is
docs/api.md."""


def document(patterns: Iterable[URLPattern], server: str) -> dict[str, Any]:
    """The whole document for these addresses."""
    paths: dict[str, dict[str, Any]] = {}
    for pattern in patterns:
        if operations := operations_of(pattern):
            paths[PREFIX + address_of(pattern)] = path_item(pattern, operations)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {"title": "Dramatis", "version": "1", "description": DESCRIPTION},
        "servers": [{"url": server}],
        "security": [{"key": []}],
        "tags": [{"name": name} for name in tags_in(paths)],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key: drm_bot_… or drm_admin_…"}
            },
            "schemas": {"Problem": PROBLEM, "FieldError": FIELD_ERROR},
        },
    }


def operations_of(pattern: URLPattern) -> Mapping[str, Operation]:
    """By method; views that are not built on the base name their own."""
    view = view_of(pattern)
    return view.operations if view else getattr(pattern.callback, "operations", {})


def address_of(pattern: URLPattern) -> str:
    return PARAMETER.sub(r"{\2}", str(pattern.pattern))


def path_item(pattern: URLPattern, operations: Mapping[str, Operation]) -> dict[str, Any]:
    named = [parameter_in_path(kind, name) for kind, name in PARAMETER.findall(str(pattern.pattern))]
    item: dict[str, Any] = {
        method.lower(): described(method, pattern, operation) for method, operation in operations.items()
    }
    return ({"parameters": named} if named else {}) | item


def parameter_in_path(kind: str, name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": KINDS[kind or "str"]}


def described(method: str, pattern: URLPattern, operation: Operation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": f"{pattern.name}-{method.lower()}",
        "summary": operation.summary,
        "tags": [operation.tag or "other"],
        "responses": responses(pattern, operation),
    }
    if operation.note:
        said["description"] = operation.note
    if parameters := [*query_parameters(operation), *headers_of(operation)]:
        said["parameters"] = parameters
    if operation.body is not None:
        content: dict[str, Any] = {"schema": operation.body}
        content |= {"example": operation.body_example} if operation.body_example is not None else {}
        said["requestBody"] = {"required": True, "content": {"application/json": content}}
    return said


def query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": name in operation.needed, "schema": schema}
        for name, schema in operation.query.items()
    ]


def headers_of(operation: Operation) -> list[dict[str, Any]]:
    found = []
    if operation.is_conditional:
        found.append(header("If-Match", "The ETag of what you have seen, or *.", required=True))
    if operation.is_retryable:
        said = "A word of your choice; sent again with the same body, the first answer is given again."
        found.append(header(HEADER, said, schema={"type": "string", "pattern": r"^[!-~]{1,255}$"}))
    return found


def header(name: str, said: str, *, required: bool = False, schema: Shape | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": said,
        "schema": schema or {"type": "string", "minLength": 1},
    }


def responses(pattern: URLPattern, operation: Operation) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done." if operation.status == 204 else operation.summary + "."}
    if operation.answer is not None:
        content: dict[str, Any] = {"schema": operation.answer}
        content |= {"example": operation.example} if operation.example is not None else {}
        good["content"] = {"application/json": content} | dict(operation.other_answers)
    said = {str(operation.status): good} | {str(status): dict(words) for status, words in operation.others}
    for status, code in sorted(refusals_of(pattern, operation).items()):
        said.setdefault(str(status), refusal(status, code))
    return said


def refusals_of(pattern: URLPattern, operation: Operation) -> dict[int, str]:
    found = dict(ALWAYS)
    if operation.query:
        found[422] = "invalid"
    if operation.body is not None:
        found |= WITH_BODY
    if operation.is_retryable:
        found = RETRYABLE | found
    if operation.permission.value != "read" or operation.body is not None:
        found.setdefault(409, "refused")
        found.setdefault(422, "invalid")
        found.setdefault(410, "erased")
    if operation.is_conditional:
        found |= CONDITIONAL
    if PARAMETER.search(str(pattern.pattern)):
        found[404] = "not_found"
    return found | dict(operation.refusals)


@cache
def refusal(status: int, code: str) -> dict[str, Any]:
    example = {
        "type": f"{PREFIX}docs/errors#{code}",
        "title": TITLES[code],
        "status": status,
        "detail": TITLES[code] + ".",
        "code": code,
        "request_id": "0e0f4f5c-8a55-4d3c-9a3f-2c7d5a0f1b7e",
    }
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}}
    return {"description": TITLES[code] + ".", "content": content}


def tags_in(paths: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found: dict[str, None] = {}
    for item in paths.values():
        for method in item.values():
            if isinstance(method, dict):
                found |= dict.fromkeys(method["tags"])
    return list(found)
