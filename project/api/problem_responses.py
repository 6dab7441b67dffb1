"""Error responses of the OpenAPI document. Each problem code is one component that operations refer to."""

from typing import Any

from django.urls import URLPattern

from personas.api.operations import Operation
from personas.api.problems import PROBLEM_CONTENT_TYPE, PROBLEM_SCHEMA, PROBLEM_TITLES
from personas.api.schema import to_camel_case
from project.api.components import NamedSchemas
from project.api.headers import DEFAULT_PROBLEM_HEADERS, PROBLEM_HEADERS, reference_headers
from project.api.path_parameters import PATH_PARAMETER

# Problem codes by HTTP status. COMMON_PROBLEMS and SERVER_PROBLEMS are those of every operation; the others
# depend on its body, values, erasable text, Idempotency-Key and If-Match headers, and path parameters. The
# document lists DEFAULT_PROBLEMS in one `4XX` response that every operation has: parameters and body show
# which of them an operation can return. Other problems are listed per operation.
COMMON_PROBLEMS = {
    400: "bad_request",
    401: "invalid_key",
    403: "out_of_scope",
    406: "not_acceptable",
    429: "rate_limited",
}
BODY_PROBLEMS = {408: "body_timeout", 413: "body_too_large", 415: "unsupported_media_type"}
VALUE_PROBLEMS = {422: "invalid"}
ERASURE_PROBLEMS = {410: "erased"}
IDEMPOTENCY_PROBLEMS = {409: "in_progress", 422: "idempotency_key_reused"}
PRECONDITION_PROBLEMS = {412: "precondition_failed", 428: "precondition_required"}
LOOKUP_PROBLEMS = {404: "not_found"}
SERVER_PROBLEMS = {500: "server_error", 503: "unavailable"}
DEFAULT_PROBLEMS = [
    *sorted(
        {
            *(COMMON_PROBLEMS | BODY_PROBLEMS | ERASURE_PROBLEMS | LOOKUP_PROBLEMS).items(),
            *(VALUE_PROBLEMS | PRECONDITION_PROBLEMS).items(),
            *IDEMPOTENCY_PROBLEMS.items(),
        }
    )
]
DEFAULT_RESPONSE = "Problem"
DEFAULT_STATUS = "4XX"
PROMPT_VERBS = ("fetch", "render")


def get_problem_codes(pattern: URLPattern, operation: Operation) -> dict[int, str]:
    """Return the problem codes that an operation is documented to return, by HTTP status."""
    codes = COMMON_PROBLEMS | SERVER_PROBLEMS
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
        codes |= LOOKUP_PROBLEMS
    return codes | dict(operation.refusals)


class ProblemResponses:
    """The problem responses that operations refer to."""

    def __init__(self) -> None:
        self._statuses: dict[str, int] = {}

    def reference(self, pattern: URLPattern, operation: Operation) -> dict[str, Any]:
        """Return the references of an operation by status, `4XX` for the common ones included.

        Server errors are listed where a client should prepare for them: where it fetches prompts.
        """
        references = {}
        for status, code in sorted(get_problem_codes(pattern, operation).items()):
            if (status, code) in DEFAULT_PROBLEMS or (
                SERVER_PROBLEMS.get(status) == code and operation.required_verb not in PROMPT_VERBS
            ):
                continue
            if self._statuses.setdefault(code, status) != status:
                raise ValueError(f"The problem {code} is documented with two statuses.")
            references[str(status)] = reference_response(to_camel_case(code))
        return references | {DEFAULT_STATUS: reference_response(DEFAULT_RESPONSE)}

    def to_components(self, schemas: NamedSchemas) -> dict[str, Any]:
        media = {"schema": schemas.reference(PROBLEM_SCHEMA)}
        examples = {
            code: {
                "summary": f"{status}: {PROBLEM_TITLES[code]}",
                "value": build_problem_example(status, code),
            }
            for status, code in DEFAULT_PROBLEMS
        }
        default = {
            "description": "A client error, with a status and code of the examples.",
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
