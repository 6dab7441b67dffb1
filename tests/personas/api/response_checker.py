"""API client that checks every response against the OpenAPI document."""

import re
from typing import Any

from django.urls import resolve

from personas.api.problems import PROBLEM_SCHEMA
from personas.api.validation import build_validator
from project.api.headers import INTRODUCED_HEADERS, RESPONSE_HEADERS, list_response_headers
from project.api.openapi import UNLISTED_PARAMS, get_operations
from project.api.problem_responses import get_problem_codes
from project.api.urls import urlpatterns
from tests.api_client import V1, Api

PATTERNS = {pattern.name: pattern for pattern in urlpatterns}


class TrueApi(Api):
    """Fails the test if a response does not conform to the document."""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = super().call(method, path, body, **headers)
        check_response(method, path if path.startswith("/") else V1 + path, answer)
        return answer

    def put(self, path: str, body: Any, etag: str = "") -> Any:
        return self.call("PUT", path, body, **({"If_Match": etag} if etag else {}))


def check_response(method: str, url: str, answer: Any) -> None:
    pattern = PATTERNS[resolve(url.partition("?")[0]).url_name]
    operation = get_operations(pattern)[method]
    other_statuses = [status for status, _ in operation.extra_responses]
    if answer.status_code == operation.status:
        check_headers(list_response_headers(operation), answer)
        is_complete = not any(f"{name}=" in url for name in UNLISTED_PARAMS)
        if is_complete and operation.answer is not None and answer["Content-Type"] == "application/json":
            check_schema(operation.answer, answer.json())
    elif answer.status_code not in other_statuses:
        assert answer.status_code in get_problem_codes(pattern, operation), (method, url, answer.content)
        check_schema(PROBLEM_SCHEMA, answer.json())


def check_headers(documented: list[str], answer: Any) -> None:
    """Check that the response has no header of RESPONSE_HEADERS that the document does not name for it."""
    present = {name for name in RESPONSE_HEADERS if name in answer.headers}
    undocumented = present - {*INTRODUCED_HEADERS, *documented}
    assert not undocumented, undocumented


def check_schema(schema: dict[str, Any], value: Any) -> None:
    errors = [
        f"{list(error.absolute_path)}: {error.message}"[:300]
        for error in build_validator(schema).iter_errors(value)
    ]
    assert not errors, errors


def without_id(answer: Any) -> tuple[int, dict[str, Any]]:
    """Return status and body without the request id and the requested name, to compare two responses."""
    body = {name: value for name, value in answer.json().items() if name != "request_id"}
    if "detail" in body:
        body["detail"] = re.sub(r"(No [a-z ]+) (?:“[^”]*”|\d+)", r"\1 …", body["detail"])
    return answer.status_code, body
