"""Strict JSON parsing of request bodies: ambiguous, too deeply nested and too large values are rejected."""

import json
import re
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from jsonschema import Draft202012Validator
from rest_framework.request import Request

from core.text.strict_json import STRICT_HOOKS, StrictJsonError
from personas.api.exception_handler import validation_problem
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.validation import find_schema_errors

MAX_JSON_DEPTH = 64
# JSON parsers differ in how they read longer integers, and parsing very long ones is slow.
MAX_INTEGER_DIGITS = 19
SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class BadJson(ValueError):
    """The request body is not acceptable JSON. The message is shown to the client."""


def parse_json_or_problem(data: bytes) -> Any:
    """Parse a JSON body. Raise a 400 problem with the reason if it is not acceptable."""
    try:
        return parse_json(data)
    except BadJson as error:
        raise ProblemError(Problem(400, "invalid_json", str(error))) from None


def parse_json(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"The body is not valid UTF-8 (byte {error.start}).") from None
    check_json_depth(text)
    try:
        value = JSON_DECODER.decode(text)
    except BadJson:
        raise
    except StrictJsonError as error:
        raise BadJson(str(error)) from None
    except ValueError as error:
        raise BadJson(f"The body is not valid JSON: {error}.") from None
    if SURROGATE_ESCAPE.search(text):
        check_surrogates(value)
    return value


def check_json_depth(text: str) -> None:
    """Reject JSON that is nested too deeply, before it is decoded: the decoder would raise RecursionError."""
    depth, is_text, is_escaped = 0, False, False
    if text.count("[") + text.count("{") <= MAX_JSON_DEPTH:
        return
    for character in text:
        if is_text:
            is_text = is_escaped or character != '"'
            is_escaped = not is_escaped and character == "\\"
        elif character == '"':
            is_text = True
        elif character in "[{":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise BadJson(f"The body is nested more than {MAX_JSON_DEPTH} levels deep.")
        elif character in "]}":
            depth -= 1


def check_surrogates(value: Any) -> None:
    """Reject lone surrogates such as `\\ud800`, which JSON can express but UTF-8 cannot encode."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadJson("The body contains a lone surrogate, which is not valid Unicode.") from None


def parse_bounded_int(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise BadJson(f"A number has more than {MAX_INTEGER_DIGITS} digits.")
    return int(digits)


def parse_finite_float(digits: str) -> float:
    value = float(digits) if len(digits) <= 400 else float("inf")
    if value in {float("inf"), float("-inf")}:
        raise BadJson("A number is too large.")
    return value


JSON_DECODER = json.JSONDecoder(
    **STRICT_HOOKS,
    parse_int=parse_bounded_int,
    parse_float=parse_finite_float,
)


JSON_TYPES = ("application/json",)
# The body of a PATCH is a JSON merge patch (RFC 7396), even if it is sent as plain JSON.
PATCH_TYPES = ("application/merge-patch+json", "application/json")


def build_media_type_problem(types: Sequence[str]) -> Problem:
    detail = f"Send {' or '.join(reversed(types))}."
    headers = {"Accept-Patch": ", ".join(types)} if types is PATCH_TYPES else {}
    errors = [FieldError(detail, header="Content-Type")]
    return Problem(415, "unsupported_media_type", f"Content-Type: {detail}", errors, headers)


ENCODED_BODY = Problem(
    415,
    "unsupported_media_type",
    "Send the body without Content-Encoding. Compressed bodies are not supported.",
    [FieldError("Send the body without compression.", header="Content-Encoding")],
    {"Accept-Encoding": "identity"},
)


def check_not_encoded(request: HttpRequest | Request) -> None:
    if request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower() not in {"", "identity"}:
        raise ProblemError(ENCODED_BODY)


def is_body_unmeasured(request: HttpRequest | Request) -> bool:
    """Whether the request may have a body, but does not announce its length.

    Without Content-Length and Transfer-Encoding, a request of HTTP/1 has no body (RFC 9112, section 6.3).
    """
    meta = request.META
    is_http1 = str(meta.get("SERVER_PROTOCOL", "")).startswith("HTTP/1")
    return not meta.get("CONTENT_LENGTH") and ("HTTP_TRANSFER_ENCODING" in meta or not is_http1)


def parse_text_body(request: HttpRequest | Request, media_type: str, validator: Draft202012Validator) -> str:
    """Return the text of a body that is not JSON. It must be UTF-8 and match the schema."""
    content_type = (request.content_type or "").partition(";")[0].strip().lower()
    if content_type != media_type:
        error = FieldError(f"Send {media_type}.", header="Content-Type")
        raise ProblemError(Problem(415, "unsupported_media_type", f"Content-Type: {error.detail}", [error]))
    check_not_encoded(request)
    # A body without Content-Length seems complete even if the connection was lost. Incomplete JSON would be
    # invalid, but incomplete text would be accepted.
    if is_body_unmeasured(request):
        detail = "Send the body with Content-Length."
        error = FieldError(detail, header="Content-Length")
        raise ProblemError(Problem(400, "bad_request", detail, [error]))
    try:
        text: str = request.body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"The body is not valid UTF-8 (byte {error.start})."
        raise ProblemError(Problem(400, "bad_request", detail)) from None
    if errors := find_schema_errors(validator, text):
        raise ProblemError(validation_problem(errors))
    return text


def parse_json_body(
    request: HttpRequest | Request,
    validator: Draft202012Validator,
    read_only_fields: frozenset[str] = frozenset(),
) -> Any:
    """Return the JSON of the body. Read-only fields are not validated: the operation compares them."""
    content_type = (request.content_type or "").partition(";")[0].strip().lower()
    types = PATCH_TYPES if request.method == "PATCH" else JSON_TYPES
    if content_type not in types:
        raise ProblemError(build_media_type_problem(types))
    check_not_encoded(request)
    value = parse_json_or_problem(request.body)
    checked = value
    if read_only_fields and isinstance(value, dict):
        checked = {name: inner for name, inner in value.items() if name not in read_only_fields}
    if errors := find_schema_errors(validator, checked):
        raise ProblemError(validation_problem(errors))
    return value
