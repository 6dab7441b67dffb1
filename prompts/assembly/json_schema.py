"""The published shape of inputs and slots, made from the same types that read them."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin

from prompts.assembly.inputs import Limits
from prompts.assembly.json_codec import hints_of
from prompts.assembly.segments import Origin

PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}


def json_schema(kind: type[Any], title: str) -> dict[str, Any]:
    """A JSON Schema document for one kind of record and all it holds."""
    shapes: dict[str, Any] = {}
    top = _shape(kind, shapes)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **top,
        "$defs": {name: shapes[name] for name in sorted(shapes)},
    }


def _shape(kind: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    shape, inner = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if shape in (Union, types.UnionType):
        arm = next(arm for arm in inner if arm is not types.NoneType)
        return {"anyOf": [_shape(arm, shapes), {"type": "null"}]}
    if shape is Literal:
        return {"enum": list(inner)}
    if shape is tuple:
        return {"type": "array", "items": _shape(inner[0], shapes)}
    if shape is Mapping:
        return {"type": "object", "additionalProperties": _shape(inner[1], shapes)}
    if kind.__name__ not in shapes:
        shapes[kind.__name__] = {}
        shapes[kind.__name__] = _record(kind, shapes)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _record(kind: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    hints = hints_of(kind)
    if kind is Origin:
        properties = {name: _shape(hints[name], shapes) for name in Origin._fields}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    assert is_dataclass(kind)  # noqa: S101  # nothing else is reachable from inputs and slots
    known = fields(kind)
    properties = {each.name: _shape(hints[each.name], shapes) for each in known}
    if kind is Limits:
        properties = {name: _positive(shape) for name, shape in properties.items()}
    needed = [each.name for each in known if each.default is MISSING and each.default_factory is MISSING]
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if doc := (kind.__doc__ or "").partition("\n")[0]:
        made["description"] = doc if not doc.startswith(f"{kind.__name__}(") else kind.__name__
    return made | ({"required": needed} if needed else {})


def _positive(shape: dict[str, Any]) -> dict[str, Any]:
    if shape.get("type") == "integer":
        return shape | {"minimum": 1}
    if "anyOf" in shape:
        return {"anyOf": [_positive(arm) for arm in shape["anyOf"]]}
    if "additionalProperties" in shape:
        return shape | {"additionalProperties": _positive(shape["additionalProperties"])}
    return shape
