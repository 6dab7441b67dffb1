"""Read typed values from untrusted JSON. `where` is the place of a value, for error messages."""

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, TypeVar, cast, get_origin, get_type_hints

from prompts.proof.canonical import format_timestamp

T = TypeVar("T")
# The largest PostgreSQL bigint.
MAX_INTEGER = 2**63 - 1


class MalformedData(ValueError):
    """The data is invalid. The message names the place of the value and what is expected there."""


def read_record(kind: type[T], data: object, where: str) -> T:
    """Build a dataclass or named tuple from a JSON object whose keys are exactly its fields.

    Fields with a default may be missing.
    """
    fields, hints = read_object(data, where), get_record_hints(cast("Hashable", kind))
    hints = {name: hint for name, hint in hints.items() if name in fields or not has_default(kind, name)}
    check_exact_keys(fields, set(hints), where)
    return kind(
        **{name: READERS_BY_TYPE[hint](fields[name], f"{where}.{name}") for name, hint in hints.items()}
    )


def has_default(kind: Any, name: str) -> bool:
    known = {field.name: field for field in dataclasses.fields(kind)} if is_dataclass(kind) else {}
    field = known.get(name)
    return field is not None and (field.default is not MISSING or field.default_factory is not MISSING)


def check_exact_keys(fields: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in sorted(known - fields.keys()):
        raise MalformedData(f"{where} lacks {name}")
    for name in sorted(map(ascii, fields.keys() - known)):
        raise MalformedData(f"{where} has an unexpected key: {name[:80]}")


def read_object(data: object, where: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise MalformedData(f"{where} must be an object")
    return data


def read_list(data: object, where: str) -> list[Any]:
    if not isinstance(data, list):
        raise MalformedData(f"{where} must be a list")
    return data


def read_text(data: object, where: str) -> str:
    if not isinstance(data, str):
        raise MalformedData(f"{where} must be text")
    try:
        data.encode()
    except UnicodeEncodeError:
        raise MalformedData(f"{where} contains a lone surrogate") from None
    return data


def read_number(data: object, where: str) -> int:
    # bool is a subclass of int in Python, but a separate type in JSON.
    if not isinstance(data, int) or isinstance(data, bool) or abs(data) > MAX_INTEGER:
        raise MalformedData(f"{where} must be a whole number")
    return data


def read_number_or_none(data: object, where: str) -> int | None:
    return None if data is None else read_number(data, where)


def read_text_or_none(data: object, where: str) -> str | None:
    return None if data is None else read_text(data, where)


def read_flag(data: object, where: str) -> bool:
    if not isinstance(data, bool):
        raise MalformedData(f"{where} must be true or false")
    return data


def read_json_timestamp(data: object, where: str) -> datetime:
    """Read a timestamp. Only the form of `format_timestamp` is accepted, because hashes cover that form."""
    text, form = read_text(data, where), "a time such as 2026-03-07T14:55:05.000000Z"
    try:
        timestamp = datetime.fromisoformat(text)
        has_form = format_timestamp(timestamp) == text
    except ValueError:
        has_form = False
    if not has_form:
        raise MalformedData(f"{where} must be {form}")
    return timestamp


@cache
def get_record_hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


READERS_BY_TYPE: dict[Any, Callable[[object, str], Any]] = {
    int: read_number,
    int | None: read_number_or_none,
    str: read_text,
    str | None: read_text_or_none,
    datetime: read_json_timestamp,
    bool: read_flag,
    Mapping[str, Any]: read_object,
    Sequence[Any]: read_list,
}
