"""Error responses of the OpenAPI document. Each problem code is one component that operations refer to."""

from typing import Any

from django.urls import URLPattern

from personas.api.operations import Operation
from personas.api.problems import PROBLEM_CONTENT_TYPE, PROBLEM_SCHEMA, PROBLEM_TITLES
from personas.api.schema import to_camel_case
from project.api.components import NamedSchemas
from project.api.headers import DEFAULT_PROBLEM_HEADERS, PROBLEM_HEADERS, reference_headers
from project.api.path_parameters import PATH_PARAMETER

# Problem codes by HTTP status: those that every operation can return, then those of operations with a request
# body, with values to validate, about text that can be erased, with an Idempotency-Key or an If-Match header.
# The document has DEFAULT_PROBLEMS in one response, the default of every operation; the others are listed per
# operation.
COMMON_PROBLEMS = {
    400: "bad_request",
    401: "invalid_key",
    403: "out_of_scope",
    406: "not_acceptable",
    429: "rate_limited",
    500: "server_error",
    503: "unavailable",
}
BODY_PROBLEMS = {408: "body_timeout", 413: "body_too_large", 415: "unsupported_media_type"}
VALUE_PROBLEMS = {422: "invalid"}
ERASURE_PROBLEMS = {410: "erased"}
IDEMPOTENCY_PROBLEMS = {409: "in_progress", 422: "idempotency_key_reused"}
PRECONDITION_PROBLEMS = {412: "precondition_failed", 428: "precondition_required"}
# 428 is here too, because a required If-Match says as much.
DEFAULT_PROBLEMS = dict(
    sorted(
        (
            COMMON_PROBLEMS
            | BODY_PROBLEMS
            | VALUE_PROBLEMS
            | ERASURE_PROBLEMS
            | {428: PRECONDITION_PROBLEMS[428]}
        ).items()
    )
)
DEFAULT_RESPONSE = "Problem"


def get_problem_codes(pattern: URLPattern, operation: Operation) -> dict[int, str]:
    """Return the problem codes that an operation is documented to return, by HTTP status."""
    codes = dict(COMMON_PROBLEMS)
    if operation.query:
        codes |= VALUE_PROBLEMS
    if operation.body is not None:
        codes |= BODY_PROBLEMS | VALUE_PROBLEMS
    if operation.is_retryable:
        codes = IDEMPOTENCY_PROBLEMS | codes
    if operation.permission.value != "read" or operation.body is not None:
        codes = {409: "refused"} | VALUE_PROBLEMS | ERASURE_PROBLEMS | codes
    if operation.is_conditional:
        codes |= PRECONDITION_PROBLEMS
    if PATH_PARAMETER.search(str(pattern.pattern)):
        codes[404] = "not_found"
    return codes | dict(operation.refusals)


class ProblemResponses:
    """The problem responses that operations refer to."""

    def __init__(self) -> None:
        self._statuses: dict[str, int] = {}

    def reference(self, pattern: URLPattern, operation: Operation) -> dict[str, Any]:
        """Return the references of an operation by status, `default` for the common ones included."""
        references = {}
        for status, code in sorted(get_problem_codes(pattern, operation).items()):
            if DEFAULT_PROBLEMS.get(status) == code:
                continue
            if self._statuses.setdefault(code, status) != status:
                raise ValueError(f"The problem {code} is documented with two statuses.")
            references[str(status)] = reference_response(to_camel_case(code))
        # Linters want one response of a client error for every operation.
        if not any(status.startswith("4") for status in references):
            self._statuses.setdefault(COMMON_PROBLEMS[401], 401)
            references["401"] = reference_response(to_camel_case(COMMON_PROBLEMS[401]))
        return references | {"default": reference_response(DEFAULT_RESPONSE)}

    def to_components(self, schemas: NamedSchemas) -> dict[str, Any]:
        media = {"schema": schemas.reference(PROBLEM_SCHEMA)}
        examples = {
            code: {
                "summary": f"{status}: {PROBLEM_TITLES[code]}",
                "value": build_problem_example(status, code),
            }
            for status, code in DEFAULT_PROBLEMS.items()
        }
        default = {
            "description": "An error that every operation can return, with a status of the examples.",
            "headers": reference_headers(DEFAULT_PROBLEM_HEADERS),
            "content": {PROBLEM_CONTENT_TYPE: {**media, "examples": examples}},
        }
        specific = {
            to_camel_case(code): {
                "description": PROBLEM_TITLES[code] + ".",
                "headers": reference_headers(["X-Request-ID", *PROBLEM_HEADERS.get(status, ())]),
                "content": {PROBLEM_CONTENT_TYPE: {**media, "example": build_problem_example(status, code)}},
            }
            for code, status in sorted(self._statuses.items())
        }
        return {DEFAULT_RESPONSE: default} | specific


def reference_response(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{name}"}


def build_problem_example(status: int, code: str) -> dict[str, Any]:
    return {
        "type": f"/api/v1/docs/errors#{code}",
        "title": PROBLEM_TITLES[code],
        "status": status,
        "detail": PROBLEM_TITLES[code] + ".",
        "code": code,
        "request_id": "0e0f4f5c-8a55-4d3c-9a3f-2c7d5a0f1b7e",
    }
