"""Inputs and slots from and to JSON; every error names the path to what is wrong."""

import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from prompts.assembly.errors import AssemblyError
from prompts.assembly.segments import Origin
from prompts.assembly.text import normalised

T = TypeVar("T")
# Deeper than any honest input; json itself would stop only when the stack does.
DEEPEST = 64
JSON_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def load(kind: type[T], data: Any, path: str = "") -> T:
    """A frozen value of this kind from plain JSON data."""
    made: T = _read(kind, data, path)
    return made


def dump(value: Any) -> Any:
    """Plain JSON data from a frozen value; what equals its default is left out."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: dump(item) for name, item in value._asdict().items() if item}
    if is_dataclass(value) and not isinstance(value, type):
        said = {each.name: getattr(value, each.name) for each in fields(value)}
        return {name: dump(item) for name, item in said.items() if item != default_of(type(value), name)}
    if isinstance(value, Mapping):
        return {key: dump(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [dump(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _read(kind: Any, data: Any, path: str) -> Any:
    shape = get_origin(kind)
    if shape in READERS:
        return READERS[shape](kind, data, path)
    if kind is Origin:
        return _read_origin(data, path)
    if is_dataclass(kind):
        return _read_record(kind, data, path)  # type: ignore[arg-type]  # a class, never an instance
    return _read_plain(kind, data, path)


def _read_list(kind: Any, data: Any, path: str) -> Any:
    items = _expect(list, data, path, "a list")
    return tuple(_read(get_args(kind)[0], item, f"{path}[{place}]") for place, item in enumerate(items))


def _read_optional(kind: Any, data: Any, path: str) -> Any:
    inner = next(arm for arm in get_args(kind) if arm is not types.NoneType)
    return None if data is None else _read(inner, data, path)


def _read_word(kind: Any, data: Any, path: str) -> Any:
    if data not in get_args(kind):
        raise AssemblyError(path, f"must be one of {', '.join(get_args(kind))}")
    return data


def _read_mapping(kind: Any, data: Any, path: str) -> dict[str, Any]:
    said = _expect(Mapping, data, path, "an object")
    inner = get_args(kind)[1]
    if inner is Any:
        return {str(key): _read_any(item, f"{path}.{key}", DEEPEST) for key, item in said.items()}
    read = {str(key): _read(inner, item, f"{path}.{key}") for key, item in said.items()}
    _refuse_limits(read, path)
    return read


def _read_record(kind: type[Any], data: Any, path: str) -> Any:
    said = _expect(Mapping, data, path, "an object")
    hints, known = hints_of(cast("Hashable", kind)), {each.name: each for each in fields(kind)}
    for name in said:
        if name not in known:
            raise AssemblyError(_join(path, str(name)), "is not a known key")
    for name, each in known.items():
        if name not in said and _is_needed(each):
            raise AssemblyError(_join(path, name), "is missing")
    read = {name: _read(hints[name], item, _join(path, name)) for name, item in said.items()}
    if kind.__name__ == "Limits":
        _refuse_limits(read, path)
    if kind.__name__ in {"Tool", "Skill"} and not read["name"]:
        raise AssemblyError(_join(path, "name"), "must not be empty")
    return kind(**read)


def _read_origin(data: Any, path: str) -> Origin:
    said = _expect(Mapping, data, path, "an object")
    for name in said:
        if name not in Origin._fields:
            raise AssemblyError(_join(path, str(name)), "is not a known key")
    hints = hints_of(Origin)
    return Origin(**{name: _read_plain(hints[name], item, _join(path, name)) for name, item in said.items()})


def _read_plain(kind: Any, data: Any, path: str) -> Any:
    if kind is datetime:
        return _read_moment(data, path)
    # bool is a kind of int in Python, but not in JSON.
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise AssemblyError(path, f"must be {JSON_NAMES[kind]}")
    return _read_text(data, path) if kind is str else data


def _read_any(data: Any, path: str, depth: int) -> Any:
    if not depth:
        raise AssemblyError(path, f"is nested more than {DEEPEST} deep")
    if isinstance(data, Mapping):
        return {str(key): _read_any(item, f"{path}.{key}", depth - 1) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return [_read_any(item, f"{path}[{place}]", depth - 1) for place, item in enumerate(data)]
    return _read_text(data, path) if isinstance(data, str) else data


def _read_text(data: str, path: str) -> str:
    try:
        data.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(data[error.start]):04X}"
        raise AssemblyError(path, f"the character {code} is half of a pair") from None
    return normalised(data)


def _read_moment(data: Any, path: str) -> datetime:
    try:
        moment = datetime.fromisoformat(_expect(str, data, path, "a time such as 2026-03-07T08:55:05-06:00"))
    except ValueError:
        raise AssemblyError(path, "must be a time such as 2026-03-07T08:55:05-06:00") from None
    if moment.tzinfo is None:
        raise AssemblyError(path, "must say its offset from UTC, such as +01:00")
    return moment


def _refuse_limits(read: Mapping[str, Any], path: str) -> None:
    for name, limit in read.items():
        if isinstance(limit, int) and not isinstance(limit, bool) and limit < 1:
            raise AssemblyError(_join(path, name), "must be at least 1")


def _expect(kind: Any, data: Any, path: str, words: str) -> Any:
    if not isinstance(data, kind):
        raise AssemblyError(path or "the whole", f"must be {words}")
    return data


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_needed(each: "Field[Any]") -> bool:
    return each.default is MISSING and each.default_factory is MISSING


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    made = {each.name: each.default for each in fields(kind) if each.default is not MISSING}
    return made | {
        each.name: each.default_factory() for each in fields(kind) if callable(each.default_factory)
    }


def default_of(kind: type[Any], name: str) -> Any:
    """What a field is when nothing is said; a needed field has no default, and equals nothing."""
    return _defaults(cast("Hashable", kind)).get(name, MISSING)


READERS: dict[Any, Callable[[Any, Any, str], Any]] = {
    Union: _read_optional,
    types.UnionType: _read_optional,
    Literal: _read_word,
    tuple: _read_list,
    Mapping: _read_mapping,
}
