"""A caller that holds every answer against what the document says of it."""

from typing import Any

from django.urls import resolve

from personas.api.validation import build_validator
from project.api.openapi import PROBLEM_SCHEMA, get_operations, get_problem_codes
from project.api.urls import urlpatterns
from tests.api_client import V1, Api

PATTERNS = {pattern.name: pattern for pattern in urlpatterns}
# The document's own reference leads elsewhere.
OPEN_PROBLEM = PROBLEM_SCHEMA | {"properties": PROBLEM_SCHEMA["properties"] | {"errors": {"type": "array"}}}


class TrueApi(Api):
    """Fails the test as soon as an answer is not as published."""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = super().call(method, path, body, **headers)
        hold(method, path if path.startswith("/") else V1 + path, answer)
        return answer

    def put(self, path: str, body: Any, etag: str = "") -> Any:
        return self.call("PUT", path, body, **({"If_Match": etag} if etag else {}))


def hold(method: str, address: str, answer: Any) -> None:
    pattern = PATTERNS[resolve(address.partition("?")[0]).url_name]
    operation = get_operations(pattern)[method]
    others = [status for status, _ in operation.extra_responses]
    if answer.status_code == operation.status:
        if operation.answer is not None and answer["Content-Type"] == "application/json":
            fit(operation.answer, answer.json())
    elif answer.status_code not in others:
        assert answer.status_code in get_problem_codes(pattern, operation), (method, address, answer.content)
        fit(OPEN_PROBLEM, answer.json())


def fit(shape: dict[str, Any], value: Any) -> None:
    wrong = [
        f"{list(error.absolute_path)}: {error.message}"[:300]
        for error in build_validator(shape).iter_errors(value)
    ]
    assert not wrong, wrong


def without_id(answer: Any) -> tuple[int, dict[str, Any]]:
    """An answer as a stranger could compare it with another."""
    return answer.status_code, {name: said for name, said in answer.json().items() if name != "request_id"}
