"""The body of a request as JSON of a known shape, or the problem that says why it is not."""

from typing import Any

from django.http import HttpRequest
from jsonschema import Draft202012Validator
from rest_framework.request import Request

from personas.api.exception_handler import invalid
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.request_body import read_json
from personas.api.validation import errors_in

NOT_JSON = Problem(
    415,
    "unsupported_media_type",
    "Send application/json.",
    [FieldError("Send application/json.", header="Content-Type")],
)


def body_of(request: HttpRequest | Request, shape: Draft202012Validator) -> Any:
    kind = (request.content_type or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ProblemError(NOT_JSON)
    value = read_json(request.body)
    if wrong := errors_in(shape, value):
        raise ProblemError(invalid(wrong))
    return value
