"""The published shape of inputs and slots, made from the same types that read them."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin

from prompts.assembly.inputs import Limits
from prompts.assembly.json_codec import get_field_hints
from prompts.assembly.segments import Origin

SCALAR_SCHEMAS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}


def build_json_schema(kind: type[Any], title: str) -> dict[str, Any]:
    """A JSON Schema document for one kind of record and all it holds."""
    shapes: dict[str, Any] = {}
    top = _build_schema(kind, shapes)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **top,
        "$defs": {name: shapes[name] for name in sorted(shapes)},
    }


def _build_schema(kind: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    shape, inner = get_origin(kind), get_args(kind)
    if kind in SCALAR_SCHEMAS:
        return SCALAR_SCHEMAS[kind]
    if shape in (Union, types.UnionType):
        arm = next(arm for arm in inner if arm is not types.NoneType)
        return {"anyOf": [_build_schema(arm, shapes), {"type": "null"}]}
    if shape is Literal:
        return {"enum": list(inner)}
    if shape is tuple:
        return {"type": "array", "items": _build_schema(inner[0], shapes)}
    if shape is Mapping:
        return {"type": "object", "additionalProperties": _build_schema(inner[1], shapes)}
    if kind.__name__ not in shapes:
        shapes[kind.__name__] = {}
        shapes[kind.__name__] = _build_record_schema(kind, shapes)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _build_record_schema(kind: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    hints = get_field_hints(kind)
    if kind is Origin:
        properties = {name: _build_schema(hints[name], shapes) for name in Origin._fields}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    assert is_dataclass(kind)  # noqa: S101  # nothing else is reachable from inputs and slots
    known = fields(kind)
    properties = {each.name: _build_schema(hints[each.name], shapes) for each in known}
    if kind is Limits:
        properties = {name: _require_positive(shape) for name, shape in properties.items()}
    needed = [each.name for each in known if each.default is MISSING and each.default_factory is MISSING]
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if doc := (kind.__doc__ or "").partition("\n")[0]:
        made["description"] = doc if not doc.startswith(f"{kind.__name__}(") else kind.__name__
    return made | ({"required": needed} if needed else {})


def _require_positive(shape: dict[str, Any]) -> dict[str, Any]:
    if shape.get("type") == "integer":
        return shape | {"minimum": 1}
    if "anyOf" in shape:
        return {"anyOf": [_require_positive(arm) for arm in shape["anyOf"]]}
    if "additionalProperties" in shape:
        return shape | {"additionalProperties": _require_positive(shape["additionalProperties"])}
    return shape
