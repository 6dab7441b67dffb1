"""Make the OpenAPI document smaller: share what is repeated, and relax the schemas of responses."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from project.api.components import FORMAT_TYPES, SCHEMA_REFERENCE, TEXT_TYPES, map_subschemas
from project.api.subset import find_used_components, list_methods

# Keywords that limit values. Responses do not have them, because a stored value may be older than a limit.
LIMITS = frozenset(
    f"{bound}{unit}" for bound in ("min", "max") for unit in ("imum", "Length", "Items", "Properties")
) | {"uniqueItems"}
# Text types that are plain strings in responses. The others, such as Digest, say what the text is.
PLAIN_TEXTS = frozenset(
    SCHEMA_REFERENCE + name
    for name, _ in (*TEXT_TYPES.values(), *FORMAT_TYPES.values())
    if name not in {"Slug", "Digest"}
)
CAPABILITY_PATTERN = "^[a-z0-9]+(?:[-_.][a-z0-9]+)*$"
FIELD_PATTERNS = {
    "AgentInput": {"capabilities": CAPABILITY_PATTERN},
    "AgentPatch": {"capabilities": CAPABILITY_PATTERN},
    "ToolInput": {"name": "^[A-Za-z_][A-Za-z0-9_.-]*$"},
    "ToolPatch": {"name": "^[A-Za-z_][A-Za-z0-9_.-]*$"},
}
RESPONSE_PREFIX = "#/components/responses/"
BODY_PREFIX = "#/components/requestBodies/"
# Keywords that the schema of a new record keeps if it is derived from the schema of a patch.
KEPT_KEYWORDS = ("description", "required", "examples", "if", "then", "else")
# A response schema with fewer fields than this is not used as a base of others.
MIN_INHERITED_FIELDS = 4
STATUS_NAMES = {"201": "Created", "202": "Accepted", "304": "NotModified"}


def relax_response_schemas(document: Mapping[str, Any]) -> None:
    """Remove limits from the schemas that only responses use, and let such objects have further fields.

    A later release may add fields to responses (docs/api-versioning.md), so `additionalProperties: false`
    would be wrong there.
    """
    schemas = document["components"]["schemas"]
    requests = [list_request_parts(item) for item in document["paths"].values()]
    used = find_used_components(document, [requests, document["components"]["parameters"]])
    relaxed = {
        name: relax_component(schema)
        for name, schema in schemas.items()
        if ("schemas", name) not in used and schema.get("type") != "string"
    }
    schemas |= relaxed | {name: extend_schema(name, relaxed) for name in relaxed}


def list_request_parts(item: Mapping[str, Any]) -> list[Any]:
    parts = [item.get("parameters")]
    for operation in list_methods(item):
        parts += [operation.get("requestBody"), operation.get("parameters")]
    return parts


def relax_component(schema: dict[str, Any]) -> dict[str, Any]:
    relaxed = {key: value for key, value in schema.items() if key not in LIMITS}
    if relaxed.get("$ref") in PLAIN_TEXTS:
        relaxed = {"type": "string"} | {key: value for key, value in relaxed.items() if key != "$ref"}
    if relaxed.get("additionalProperties") is False:
        del relaxed["additionalProperties"]
    return map_subschemas(relaxed, relax_component)


def add_field_patterns(document: Mapping[str, Any]) -> None:
    """Add the patterns that services check beyond the schema, with messages of their own."""
    schemas = document["components"]["schemas"]
    for name in FIELD_PATTERNS.keys() & schemas.keys():
        for field, pattern in FIELD_PATTERNS[name].items():
            schema = schemas[name]["properties"][field]
            target = schema.get("items", schema)
            target |= {"type": "string", "pattern": pattern}
            target.pop("$ref", None)


def extend_schema(name: str, schemas: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a response, derived from the one that it extends.

    `ContextFileDetail` extends `ContextFile`: its name begins with that name, and it has the same fields and
    some more.
    """
    schema = schemas[name]
    fields = schema.get("properties", {})
    bases = [
        base
        for base, other in schemas.items()
        if name.startswith(base)
        and len(other.get("properties", {})) >= MIN_INHERITED_FIELDS
        and fields.items() > other["properties"].items()
        and set(schema.get("required", ())) >= set(other.get("required", ()))
    ]
    if not bases:
        return schema
    base = max(bases, key=lambda candidate: len(schemas[candidate]["properties"]))
    inherited = schemas[base]
    return {
        "allOf": [{"$ref": SCHEMA_REFERENCE + base}],
        **schema,
        "properties": {key: value for key, value in fields.items() if key not in inherited["properties"]},
        "required": [key for key in schema["required"] if key not in inherited["required"]],
    }


def derive_input_schemas(document: Mapping[str, Any]) -> None:
    """Derive the schema of a new record from that of a patch, if both have the same fields.

    The schema of a replacement is derived in the same way.
    """
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        patch = f"{name.removesuffix('Input')}Patch"
        if schemas.get(patch, {}).get("properties", "") == schema.get("properties"):
            kept = {key: schema[key] for key in KEPT_KEYWORDS if key in schema}
            schemas[name] = {"allOf": [{"$ref": SCHEMA_REFERENCE + patch}], **kept}


def share_messages(document: Mapping[str, Any]) -> None:
    """Make components of successful responses and request bodies that several operations have."""
    operations = [operation for item in document["paths"].values() for operation in list_methods(item)]
    responses = [
        (operation["responses"], status)
        for operation in operations
        for status in operation["responses"]
        if status < "4"
    ]
    document["components"]["responses"] |= share_values(responses, RESPONSE_PREFIX, name_response)
    bodies = [(operation, "requestBody") for operation in operations if "requestBody" in operation]
    document["components"]["requestBodies"] = share_values(bodies, BODY_PREFIX, name_body)


def share_values(places: Iterable[tuple[dict[str, Any], str]], prefix: str, get_name: Any) -> dict[str, Any]:
    """Replace values that occur several times by references, and return the components by name.

    A value stays where it is if the reference would be longer, or if another component has its name.
    """
    places = list(places)
    uses = Counter(json.dumps(holder[key]) for holder, key in places)
    components: dict[str, Any] = {}
    for holder, key in places:
        value = holder[key]
        reference = {"$ref": prefix + (name := get_name(key, value))}
        is_shared = uses[json.dumps(value)] > 1 and len(json.dumps(reference)) < len(json.dumps(value))
        if is_shared and name and components.setdefault(name, value) == value:
            holder[key] = reference
    return dict(sorted(components.items()))


def name_response(status: str, response: Mapping[str, Any]) -> str:
    """Return a name after the schema, such as `Agent` or `AgentCreated`; empty if there is no schema."""
    media = response.get("content", {}).get("application/json", {})
    schema = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return schema + STATUS_NAMES.get(status, "") if schema or status == "304" else ""


def name_body(_: str, body: Mapping[str, Any]) -> str:
    media = body["content"].get("application/json", {})
    return str(media.get("schema", {}).get("$ref", "").rpartition("/")[2])
