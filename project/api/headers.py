"""Headers of requests and responses in the OpenAPI document, and which operation has them."""

from collections.abc import Iterable
from typing import Any

from personas.api.idempotency import IDEMPOTENCY_HEADER
from personas.api.operations import Operation
from personas.api.schema import Schema, digest_schema, integer_schema

TEXT: Schema = {"type": "string"}
COUNT = integer_schema(1)
# Description, schema and example of each response header, by name.
RESPONSE_HEADERS: dict[str, tuple[str, Schema, Any]] = {
    "X-Request-ID": ("The ID of the request, as in the server log and the audit log.", TEXT, ""),
    "RateLimit": (
        "The budget, requests left (`r`), seconds until it is full (`t`) or, if none are left, until one is.",
        TEXT,
        '"read";r=599;t=1',
    ),
    "RateLimit-Policy": (
        "The name of the budget, and how many requests (`q`) it allows in `w` seconds.",
        TEXT,
        '"read";q=600;w=60',
    ),
    "Retry-After": ("Number of seconds after which to try again.", COUNT, 2),
    "WWW-Authenticate": ("The authentication scheme to use.", TEXT, "Bearer"),
    "ETag": ("The state of the resource, to send as If-Match or If-None-Match.", TEXT, '"3"'),
    "Location": ("The path of the new resource.", {"type": "string", "format": "uri-reference"}, ""),
    "Link": (
        'The next page of the list, as `<path>; rel="next"`. Absent on the last page.',
        TEXT,
        '</api/v1/agents?limit=50&cursor=cDUw>; rel="next"',
    ),
    "Dramatis-Prompts-Built": ("How many prompts got a new version. Absent if none.", COUNT, 2),
    "Dramatis-Prompts-Pending": ("How many prompts workers will rebuild. Absent if none.", COUNT, 40),
    "Dramatis-Prompts-Failed": ("How many prompts could not be built. Absent if none.", COUNT, 1),
    "Dramatis-Version": ("The number of the version.", COUNT, 3),
    "Dramatis-Ledger": ("The id of the ledger entry of this fetch.", COUNT, 12),
    "Dramatis-Digest": ("SHA-256 of the served text in UTF-8.", digest_schema(), ""),
    "Dramatis-Unplaced": ("Names of the values that the layout does not use.", TEXT, "task, host"),
    "Repr-Digest": ("Digest of the response body (RFC 9530).", TEXT, ""),
    "Deprecation": ("Since when the operation is deprecated (RFC 9745).", TEXT, "@1793491200"),
    "Sunset": ("When the operation may be removed (RFC 8594).", TEXT, "Sat, 01 May 2027 00:00:00 GMT"),
}
# Headers that many responses have. The introduction of the document describes them.
COMMON_HEADERS = ("X-Request-ID", "RateLimit", "RateLimit-Policy")
BUILD_HEADERS = ("Dramatis-Prompts-Built", "Dramatis-Prompts-Pending", "Dramatis-Prompts-Failed")
INTRODUCED_HEADERS = (*COMMON_HEADERS, "Idempotency-Replayed", *BUILD_HEADERS)
DEPRECATION_HEADERS = ("Deprecation", "Sunset")
DEFAULT_PROBLEM_HEADERS = (*COMMON_HEADERS, "Retry-After", "WWW-Authenticate")
SKILL_HEADERS = ("Dramatis-Version", "Dramatis-Ledger", "Dramatis-Digest")
PROMPT_HEADERS = ("Dramatis-Version", "Dramatis-Ledger", "Dramatis-Digest", "Repr-Digest")
# Headers of single operations, by operation id.
OPERATION_HEADERS: dict[str, tuple[str, ...]] = {
    "getPrompt": PROMPT_HEADERS,
    "getPromptText": PROMPT_HEADERS,
    "listPromptSkills": ("Dramatis-Version",),
    **dict.fromkeys(("getPromptSkill", "getPromptSkillFile", "getAgentSkill"), SKILL_HEADERS),
    "rebuildPrompts": BUILD_HEADERS,
    "renderPrompt": ("ETag", *PROMPT_HEADERS, "Dramatis-Unplaced"),
}
PROBLEM_HEADERS: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    409: ("Retry-After",),
    412: ("ETag",),
}
ETAG_LIST: Schema = {
    "type": "string",
    "pattern": r'^(?:\*|(?:W/)?"[!#-~]*"(?:, ?(?:W/)?"[!#-~]*")*)$',
}
REQUEST_HEADERS: dict[str, dict[str, Any]] = {
    "If-Match": {
        "required": True,
        "description": "The ETag from your last read, or `*` for any state.",
        "schema": ETAG_LIST,
        "example": '"3"',
    },
    "If-Match-To-Replace": {
        "name": "If-Match",
        "required": False,
        "description": "The ETag from your last read, or `*`, to replace an existing resource.",
        "schema": ETAG_LIST,
        "example": '"3"',
    },
    "If-None-Match-To-Create": {
        "name": "If-None-Match",
        "required": False,
        "description": "`*`, to create a new resource.",
        "schema": {"type": "string", "pattern": r"^\*$"},
        "example": "*",
    },
    "If-None-Match": {
        "required": False,
        "description": "ETags of your copies. If one is current, the response is 304 without a body.",
        "schema": {"type": "string"},
        "example": '"3"',
    },
    IDEMPOTENCY_HEADER: {
        "required": False,
        "description": "A value of your choice, such as a UUID. A repeated request with the same key "
        "and body gets the response of the first one.",
        "schema": {"type": "string", "pattern": r"^[!-~]{1,255}$"},
        "example": "0e0f4f5c-8a55-4d3c-9a3f-2c7d5a0f1b7e",
    },
}


def list_request_headers(operation: Operation) -> list[str]:
    names = ["If-Match"] if operation.is_conditional else []
    if operation.can_create:
        names = ["If-Match-To-Replace", "If-None-Match-To-Create"]
    if 304 in get_extra_statuses(operation):
        names.append("If-None-Match")
    if operation.is_retryable:
        names.append(IDEMPOTENCY_HEADER)
    return names


def list_response_headers(operation: Operation) -> list[str]:
    """Return the names of the headers that the successful response can have, besides INTRODUCED_HEADERS."""
    names = ["ETag"] if has_etag(operation) else []
    names += OPERATION_HEADERS.get(operation.operation_id, ())
    if operation.status in {201, 202} and operation.is_addressable:
        names.append("Location")
    if "cursor" in operation.query:
        names.append("Link")
    if operation.deprecated_at:
        names += ["Deprecation", "Sunset"] if operation.sunset_at else ["Deprecation"]
    return names


def has_etag(operation: Operation) -> bool:
    """Whether the response has an ETag: of the record in the body, or one to send as If-None-Match."""
    answers = [operation.answer or {}]
    if operation.status == 201:
        answers += answers[0].get("properties", {}).values()
    return 304 in get_extra_statuses(operation) or any(
        "etag" in answer.get("properties", {}) for answer in answers
    )


def get_extra_statuses(operation: Operation) -> set[int]:
    return {status for status, _ in operation.extra_responses}


def reference_headers(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def build_header_components(operations: Iterable[Operation]) -> dict[str, Any]:
    unused = () if any(operation.deprecated_at for operation in operations) else DEPRECATION_HEADERS
    return {
        name: {"description": description, "schema": schema} | ({"example": example} if example else {})
        for name, (description, schema, example) in RESPONSE_HEADERS.items()
        if name not in unused
    }


def build_header_parameters() -> dict[str, Any]:
    return {
        component: {"name": component, "in": "header", **parameter}
        for component, parameter in REQUEST_HEADERS.items()
    }
