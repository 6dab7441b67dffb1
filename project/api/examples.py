"""Build the examples of the OpenAPI document from schemas and from values by field name."""

import re
from collections.abc import Iterable
from typing import Any

from personas.api.schema import WEBHOOK_URL_FORMAT, Schema
from project.api.example_values import BODY_EXAMPLES, DIGEST, FIELD_VALUES, SCHEMA_VALUES, TIME

JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
# To keep examples small, lists of these details are left empty, unless the schema requires items.
DETAILS = frozenset(
    {
        *("ProvenanceSpan", "PromptSegment", "FileProblem", "Finding", "FileRefusal", "VersionCause"),
        *("Waiver", "UnusedFile", "EffectiveFile", "CheckedVersion", "QuarantinedFile", "WebhookAttempt"),
        *("PushRefusal", "ContextFileRejection", "BuiltVersion", "LabelPosition"),
    }
)
# From this depth on, lists of objects are left empty in examples, unless the schema requires items.
MAX_DEPTH = 2


def build_body_example(schema: Schema) -> Any:
    """Return an example of a request body: the one of its title, or the fields that are required."""
    title = schema.get("title", "")
    if title in BODY_EXAMPLES:
        return BODY_EXAMPLES[title]
    if title.endswith("Replacement"):
        example = BODY_EXAMPLES[title.removesuffix("Replacement") + "Input"]
        fields = schema["allOf"][0]["properties"]
        return {name: value for name, value in example.items() if name in fields}
    properties: dict[str, Schema] = schema.get("properties", {})
    names: Iterable[str] = schema.get("required", properties)
    return {name: build_value(properties[name], name, title) for name in names}


def build_response_example(schema: Schema) -> Any:
    return build_value(schema, "", "")


def build_value(schema: Schema, name: str, title: str, depth: int = 0) -> Any:
    """Return an example of a value. `name` is its field, `title` the title of the object with the field."""
    if "const" in schema:
        return schema["const"]
    types = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    value = SCHEMA_VALUES.get(title, {}).get(name, FIELD_VALUES.get(name))
    if value is not None and is_fitting(value, schema, types):
        return value
    if options := schema.get("anyOf") or schema.get("oneOf"):
        is_optional = {"type": "null"} in options
        return None if is_optional else build_value(options[0], name, title, depth)
    if "null" in types:
        return None
    return build_typed_value(schema, str(types[0]), name, depth)


def is_fitting(value: Any, schema: Schema, types: list[str | None]) -> bool:
    """Return whether a value by field name can be used: it has the field's type, choices and pattern."""
    if isinstance(value, bool) and "boolean" not in types:
        return False
    kinds = [JSON_TYPES[kind] for kind in types if kind in JSON_TYPES]
    if not any(isinstance(value, kind) for kind in kinds) or value not in schema.get("enum", [value]):
        return False
    if isinstance(value, list):
        items = schema.get("items", {})
        return all(is_fitting(item, items, [items.get("type")]) for item in value)
    if isinstance(value, dict):
        return "properties" not in schema
    return not isinstance(value, str) or bool(re.fullmatch(schema.get("pattern", ".*"), value, re.DOTALL))


def build_typed_value(schema: Schema, kind: str, name: str, depth: int) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        title = schema.get("title", "")
        return {
            field: build_value(inner, field, title, depth + 1)
            for field, inner in schema.get("properties", {}).items()
        }
    if kind == "array":
        item = schema["items"]
        has_example = ("properties" in item or "oneOf" in item) and item.get("title") not in DETAILS
        count = max(schema.get("minItems", 0), 1 if has_example and depth < MAX_DEPTH else 0)
        return [build_value(schema["items"], "", "", depth + 1)] * count
    if kind in {"integer", "number"}:
        return max(schema.get("minimum", 0), 0)
    return False if kind == "boolean" else build_text(schema, name)


def build_text(schema: Schema, name: str) -> str:
    if schema.get("format") == "date-time" or name.endswith("_at"):
        return TIME
    if schema.get("format") == "date":
        return TIME[:10]
    if schema.get("format") == WEBHOOK_URL_FORMAT:
        return "https://example.com/hook"
    if "64" in schema.get("pattern", "") or name.endswith(("digest", "hash")):
        return DIGEST
    return FIELD_VALUES["slug"] if schema.get("minLength") else ""
