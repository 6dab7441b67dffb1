"""Reads the words behind the question mark: each is known, given once, and of its kind."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import QueryDict

from personas.api.exception_handler import invalid
from personas.api.problems import FieldError, ProblemError
from personas.api.schema import Shape
from personas.api.validation import errors_in, read_moment, validator


def read_query(said: QueryDict, known: Mapping[str, Shape], needed: Sequence[str] = ()) -> dict[str, Any]:
    """The values by name, with defaults; a word nobody knows is a mistake that should show."""
    wrong = [FieldError("This is needed.", parameter=name) for name in needed if name not in said]
    values: dict[str, Any] = {name: shape["default"] for name, shape in known.items() if "default" in shape}
    for name, given in said.lists():
        if name not in known:
            wrong.append(FieldError("There is no such parameter here.", parameter=name[:80]))
        elif len(given) > 1:
            wrong.append(FieldError("Give this once.", parameter=name))
        else:
            value = taken(given[0], known[name])
            problems = errors_in(validator(known[name]), value)
            wrong += [FieldError(problem.detail, parameter=name) for problem in problems]
            values[name] = value
    if wrong:
        raise ProblemError(invalid(wrong))
    return {name: as_moment(value, known[name]) for name, value in values.items()}


def taken(word: str, shape: Shape) -> Any:
    """The word as its kind; what cannot be is left a word, and refused as such."""
    if shape.get("type") == "integer":
        digits = word.removeprefix("-")
        return int(word) if digits.isascii() and digits.isdecimal() and len(digits) <= 19 else word
    if shape.get("type") == "boolean":
        return {"true": True, "false": False}.get(word, word)
    return word


def as_moment(value: Any, shape: Shape) -> Any:
    if shape.get("format") == "date-time" and isinstance(value, str):
        return read_moment(value)
    return value
