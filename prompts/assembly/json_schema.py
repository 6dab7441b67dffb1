"""Generate the published JSON schemas of inputs and slots from their dataclasses."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin

from prompts.assembly.inputs import Limits
from prompts.assembly.json_codec import get_field_hints
from prompts.assembly.segments import Origin
from prompts.assembly.slots import CallLimits

SCALAR_SCHEMAS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}


def build_json_schema(kind: type[Any], title: str) -> dict[str, Any]:
    """Build the JSON Schema document of a dataclass and everything it contains."""
    definitions: dict[str, Any] = {}
    top = _build_schema(kind, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **top,
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def _build_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    type_origin, inner = get_origin(kind), get_args(kind)
    if kind in SCALAR_SCHEMAS:
        return SCALAR_SCHEMAS[kind]
    if type_origin in (Union, types.UnionType):
        arm = next(arm for arm in inner if arm is not types.NoneType)
        return {"anyOf": [_build_schema(arm, definitions), {"type": "null"}]}
    if type_origin is Literal:
        return {"enum": list(inner)}
    if type_origin is tuple:
        return {"type": "array", "items": _build_schema(inner[0], definitions)}
    if type_origin is Mapping:
        return {"type": "object", "additionalProperties": _build_schema(inner[1], definitions)}
    name = _get_definition_name(kind)
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = _build_record_schema(kind, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _get_definition_name(kind: type[Any]) -> str:
    return kind.__name__.removesuffix("Input")


def _build_record_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_field_hints(kind)
    if kind is Origin:
        properties = {name: _build_schema(hints[name], definitions) for name in Origin._fields}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    assert is_dataclass(kind)  # noqa: S101  # nothing else is reachable from inputs and slots
    known_fields = fields(kind)
    properties = {field_.name: _build_schema(hints[field_.name], definitions) for field_ in known_fields}
    if kind in (Limits, CallLimits):
        properties = {name: _require_positive(property_) for name, property_ in properties.items()}
    required = [
        field_.name
        for field_ in known_fields
        if field_.default is MISSING and field_.default_factory is MISSING
    ]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if doc := (kind.__doc__ or "").partition("\n")[0]:
        schema["description"] = doc if not doc.startswith(f"{kind.__name__}(") else _get_definition_name(kind)
    return schema | ({"required": required} if required else {})


def _require_positive(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "integer":
        return schema | {"minimum": 1}
    if "anyOf" in schema:
        return {"anyOf": [_require_positive(arm) for arm in schema["anyOf"]]}
    if "additionalProperties" in schema:
        return schema | {"additionalProperties": _require_positive(schema["additionalProperties"])}
    return schema
