"""Reads a body as JSON, strictly: what would be read in two ways is not read at all."""

import json
import re
from collections import Counter
from typing import Any

from django.http import HttpRequest
from jsonschema import Draft202012Validator
from rest_framework.request import Request

from personas.api.exception_handler import invalid
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.validation import errors_in

DEPTH = 64
# Larger whole numbers are read differently from one reader to the next, and take long to read.
DIGITS = 19
SPELLED = re.compile(r"\\u[dD][89a-fA-F]")


class BadJson(ValueError):
    """JSON that is not taken; the message is for people."""


def read_json(data: bytes) -> Any:
    """The value in the body; raises a problem that says why there is none."""
    try:
        return parsed(data)
    except BadJson as error:
        raise ProblemError(Problem(400, "bad_json", str(error))) from None


def parsed(data: bytes) -> Any:
    try:
        words = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"The body is not UTF-8: byte {error.start} cannot be read.") from None
    refuse_depth(words)
    try:
        value = READER.decode(words)
    except BadJson:
        raise
    except ValueError as error:
        raise BadJson(f"The body is not JSON: {error}.") from None
    if SPELLED.search(words):
        refuse_half_characters(value)
    return value


def refuse_depth(words: str) -> None:
    """Counted before anything is built: the reader itself would fail without a word."""
    depth, is_text, is_escaped = 0, False, False
    if words.count("[") + words.count("{") <= DEPTH:
        return
    for character in words:
        if is_text:
            is_text = is_escaped or character != '"'
            is_escaped = not is_escaped and character == "\\"
        elif character == '"':
            is_text = True
        elif character in "[{":
            depth += 1
            if depth > DEPTH:
                raise BadJson(f"The body is nested more than {DEPTH} deep.")
        elif character in "]}":
            depth -= 1


def refuse_half_characters(value: Any) -> None:
    """Half of a surrogate pair, which JSON can spell and nothing can store."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadJson("The body holds half a character (a lone surrogate).") from None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise BadJson(f"“{twice[:80]}” stands twice in one object.")
    return made


def refuse_constant(name: str) -> Any:
    raise BadJson(f"{name} is not JSON.")


def bounded(digits: str) -> int:
    if len(digits.lstrip("-")) > DIGITS:
        raise BadJson(f"A whole number has more than {DIGITS} digits.")
    return int(digits)


def finite(digits: str) -> float:
    value = float(digits) if len(digits) <= 400 else float("inf")
    if value in {float("inf"), float("-inf")}:
        raise BadJson("A number is too large.")
    return value


READER = json.JSONDecoder(
    object_pairs_hook=once, parse_constant=refuse_constant, parse_int=bounded, parse_float=finite
)


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
