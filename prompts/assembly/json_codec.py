"""Convert inputs and slots from and to JSON; every error names the path of the invalid value."""

import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from prompts.assembly.errors import AssemblyError
from prompts.assembly.segments import Origin
from prompts.assembly.text import normalize_line_ends

T = TypeVar("T")
# Maximum nesting of free-form JSON values. Python's json module fails only when the stack is exhausted.
MAX_DEPTH = 64
JSON_TYPE_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def parse_dataclass(kind: type[T], data: Any, path: str = "") -> T:
    """Build a dataclass instance from plain JSON data; raise AssemblyError if the data is invalid."""
    parsed: T = _read_value(kind, data, path)
    return parsed


def dataclass_json(value: Any) -> Any:
    """Convert a value to plain JSON data; fields equal to their default are omitted."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: dataclass_json(item) for name, item in value._asdict().items() if item}
    if is_dataclass(value) and not isinstance(value, type):
        values = {field_.name: getattr(value, field_.name) for field_ in fields(value)}
        return {
            name: dataclass_json(item)
            for name, item in values.items()
            if item != get_field_default(type(value), name)
        }
    if isinstance(value, Mapping):
        return {key: dataclass_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [dataclass_json(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _read_value(kind: Any, data: Any, path: str) -> Any:
    type_origin = get_origin(kind)
    if type_origin in READERS_BY_TYPE:
        return READERS_BY_TYPE[type_origin](kind, data, path)
    if kind is Origin:
        return _read_origin(data, path)
    if is_dataclass(kind):
        return _read_record(kind, data, path)  # type: ignore[arg-type]  # a class, never an instance
    return _read_scalar(kind, data, path)


def _read_list(kind: Any, data: Any, path: str) -> Any:
    items = _require_type(list, data, path, "a list")
    return tuple(_read_value(get_args(kind)[0], item, f"{path}[{index}]") for index, item in enumerate(items))


def _read_optional(kind: Any, data: Any, path: str) -> Any:
    inner = next(arm for arm in get_args(kind) if arm is not types.NoneType)
    return None if data is None else _read_value(inner, data, path)


def _read_choice(kind: Any, data: Any, path: str) -> Any:
    if data not in get_args(kind):
        raise AssemblyError(path, f"must be one of {', '.join(get_args(kind))}")
    return data


def _read_mapping(kind: Any, data: Any, path: str) -> dict[str, Any]:
    values = _require_type(Mapping, data, path, "an object")
    inner = get_args(kind)[1]
    if inner is Any:
        return {str(key): _read_json_value(item, f"{path}.{key}", MAX_DEPTH) for key, item in values.items()}
    read = {str(key): _read_value(inner, item, f"{path}.{key}") for key, item in values.items()}
    _check_limits(read, path)
    return read


def _read_record(kind: type[Any], data: Any, path: str) -> Any:
    values = _require_type(Mapping, data, path, "an object")
    hints, known_fields = (
        get_field_hints(cast("Hashable", kind)),
        {field_.name: field_ for field_ in fields(kind)},
    )
    for name in values:
        if name not in known_fields:
            raise AssemblyError(_join_path(path, str(name)), "is not a known key")
    for name, field_ in known_fields.items():
        if name not in values and _is_required(field_):
            raise AssemblyError(_join_path(path, name), "is missing")
    read = {name: _read_value(hints[name], item, _join_path(path, name)) for name, item in values.items()}
    if kind.__name__ in {"Limits", "CallLimits"}:
        _check_limits(read, path)
    if kind.__name__ in {"ToolInput", "CallTool", "SkillInput"} and not read["name"]:
        raise AssemblyError(_join_path(path, "name"), "must not be empty")
    return kind(**read)


def _read_origin(data: Any, path: str) -> Origin:
    values = _require_type(Mapping, data, path, "an object")
    for name in values:
        if name not in Origin._fields:
            raise AssemblyError(_join_path(path, str(name)), "is not a known key")
    hints = get_field_hints(Origin)
    return Origin(
        **{name: _read_scalar(hints[name], item, _join_path(path, name)) for name, item in values.items()}
    )


def _read_scalar(kind: Any, data: Any, path: str) -> Any:
    if kind is datetime:
        return _read_datetime(data, path)
    # JSON Schema counts 256.0 as an integer.
    if kind is int and isinstance(data, float) and data.is_integer():
        return int(data)
    # bool is a subclass of int in Python, but a separate type in JSON.
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise AssemblyError(path, f"must be {JSON_TYPE_NAMES[kind]}")
    return _read_text(data, path) if kind is str else data


def _read_json_value(data: Any, path: str, depth: int) -> Any:
    if not depth:
        raise AssemblyError(path, f"is nested more than {MAX_DEPTH} deep")
    if isinstance(data, Mapping):
        return {str(key): _read_json_value(item, f"{path}.{key}", depth - 1) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return [_read_json_value(item, f"{path}[{index}]", depth - 1) for index, item in enumerate(data)]
    return _read_text(data, path) if isinstance(data, str) else data


def _read_text(data: str, path: str) -> str:
    try:
        data.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(data[error.start]):04X}"
        raise AssemblyError(path, f"the character {code} is half of a pair") from None
    return normalize_line_ends(data)


def _read_datetime(data: Any, path: str) -> datetime:
    try:
        timestamp = datetime.fromisoformat(
            _require_type(str, data, path, "a time such as 2026-03-07T08:55:05-06:00")
        )
    except ValueError:
        raise AssemblyError(path, "must be a time such as 2026-03-07T08:55:05-06:00") from None
    if timestamp.tzinfo is None:
        raise AssemblyError(path, "must say its offset from UTC, such as +01:00")
    return timestamp


def _check_limits(read: Mapping[str, Any], path: str) -> None:
    for name, limit in read.items():
        if isinstance(limit, int) and not isinstance(limit, bool) and limit < 1:
            raise AssemblyError(_join_path(path, name), "must be at least 1")


def _require_type(kind: Any, data: Any, path: str, expected: str) -> Any:
    if not isinstance(data, kind):
        raise AssemblyError(path or "the whole", f"must be {expected}")
    return data


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_required(field_: "Field[Any]") -> bool:
    return field_.default is MISSING and field_.default_factory is MISSING


@cache
def get_field_hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _get_defaults(kind: Any) -> dict[str, Any]:
    defaults = {field_.name: field_.default for field_ in fields(kind) if field_.default is not MISSING}
    return defaults | {
        field_.name: field_.default_factory() for field_ in fields(kind) if callable(field_.default_factory)
    }


def get_field_default(kind: type[Any], name: str) -> Any:
    """Return the default of a field. A required field has MISSING, which differs from every value."""
    return _get_defaults(cast("Hashable", kind)).get(name, MISSING)


READERS_BY_TYPE: dict[Any, Callable[[Any, Any, str], Any]] = {
    Union: _read_optional,
    types.UnionType: _read_optional,
    Literal: _read_choice,
    tuple: _read_list,
    Mapping: _read_mapping,
}
