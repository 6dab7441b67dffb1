"""Named schemas of the OpenAPI document: a schema with a title is a component, its uses are references."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from personas.api.schema import (
    ABSOLUTE_PATH_FORMAT,
    DIGEST_PATTERN,
    FILE_NAME_FORMAT,
    FILE_PATTERN,
    FOLDER_FORMAT,
    FRONT_MATTER_FORMAT,
    JSON_OBJECT_FORMAT,
    LINE_PATTERN,
    MAX_INTEGER,
    NONBLANK_LINE_PATTERN,
    NONBLANK_PROSE_PATTERN,
    PATH_PATTERN_FORMAT,
    PROSE_PATTERN,
    RELATIVE_PATH_FORMAT,
    SIGNATURE_FORMAT,
    SKILL_FILE_FORMAT,
    SLUG_PATTERN,
    TIME_ZONE_FORMAT,
    WEBHOOK_URL_FORMAT,
    Schema,
)

SCHEMA_REFERENCE = "#/components/schemas/"
MAX_SAFE_INTEGER = 2**53 - 1
# Keywords of JSON Schema whose value is a schema, a list of schemas, or an object of schemas.
SCHEMA_KEYWORDS = (
    *("items", "additionalProperties", "propertyNames", "not", "contains", "if", "then", "else"),
)
SCHEMA_LIST_KEYWORDS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMA_MAP_KEYWORDS = ("properties", "patternProperties")
# Names and descriptions of components for texts with these patterns. Each use states its own length limits.
TEXT_TYPES = {
    LINE_PATTERN: ("Line", "Text on one line, without control characters."),
    NONBLANK_LINE_PATTERN: ("NonblankLine", "Text on one line with at least one visible character."),
    PROSE_PATTERN: ("Prose", "Text whose only control characters are tabs and line breaks."),
    NONBLANK_PROSE_PATTERN: ("NonblankProse", "Such text with at least one visible character."),
    FILE_PATTERN: ("FileText", "Such text, also without the noncharacters U+FFFE and U+FFFF."),
    SLUG_PATTERN: ("Slug", "Up to 64 lowercase letters and digits, separated by single hyphens."),
    DIGEST_PATTERN: ("Digest", "A SHA-256 digest in hexadecimal."),
}
# Names and descriptions of components for texts with these formats, which no pattern describes.
FORMAT_TYPES = {
    TIME_ZONE_FORMAT: ("TimeZone", "The name of an IANA time zone. Empty: none."),
    FRONT_MATTER_FORMAT: ("FrontMatter", "YAML lines `key: value`, without keys that have their own field."),
    SKILL_FILE_FORMAT: ("SkillFileText", "A SKILL.md: front matter between --- lines, then instructions."),
    RELATIVE_PATH_FORMAT: ("RelativePath", "Printable names separated by /, none of them empty, . or .."),
    ABSOLUTE_PATH_FORMAT: ("AbsolutePath", "A POSIX path, or a Windows path with a drive letter, or empty."),
    FILE_NAME_FORMAT: ("FileName", "A printable name without /, other than . and .."),
    FOLDER_FORMAT: ("FolderPath", "A path below the root or ~/, or an absolute path."),
    SIGNATURE_FORMAT: ("Signature", "Types of data and result, such as (user_id :int) -> {count :int}."),
    PATH_PATTERN_FORMAT: ("PathPattern", "A relative path with at most one *, without ?, [ and ]."),
    WEBHOOK_URL_FORMAT: ("WebhookUrl", "A URL with https that the server may request."),
    JSON_OBJECT_FORMAT: ("JsonObjectText", "A JSON object as text. Empty: none."),
}
# The component for objects with arbitrary fields. Without it, generators would create a type for each use.
ANY_OBJECT = "AnyObject"
# Limits that are part of a text type. Its uses do not repeat them.
IMPLIED_LIMITS = {
    "Slug": {"minLength": 1, "maxLength": 64},
    "NonblankLine": {"minLength": 1},
    "NonblankProse": {"minLength": 1},
}
# Keywords that may differ between the uses of a named schema.
USE_KEYWORDS = ("description", "default")


class NamedSchemas:
    """Collect the titled schemas that other schemas contain, at any depth.

    Each use may have its own description and default. If the descriptions differ, each is placed next to its
    reference; if they are all the same, it is placed in the component.
    """

    def __init__(self, schemas: Iterable[Schema]) -> None:
        self._schemas: dict[str, Schema] = {}
        self._descriptions: dict[str, set[str]] = defaultdict(set)
        self._value_types: dict[str, Schema] = {}
        for schema in schemas:
            self._collect(schema)

    def _collect(self, schema: Schema) -> Schema:
        if name := schema.get("title"):
            definition = {key: value for key, value in schema.items() if key not in USE_KEYWORDS}
            if self._schemas.setdefault(name, definition) != definition:
                raise ValueError(f"Two different schemas have the title {name}.")
            self._descriptions[name].add(schema.get("description", ""))
        map_subschemas(schema, self._collect)
        return schema

    def reference(self, schema: Schema) -> Schema:
        """Return the schema with references in place of named schemas."""
        if not (name := schema.get("title")):
            if schema.get("pattern") in TEXT_TYPES or schema.get("format") in FORMAT_TYPES:
                if schema.get("type") == "string":
                    return self._reference_text_type(schema)
                if schema.get("type") == ["string", "null"]:
                    return self._reference_nullable_text(schema)
            if {key: value for key, value in schema.items() if key not in USE_KEYWORDS} == {"type": "object"}:
                return self._reference_any_object(schema)
            return map_subschemas(limit_to_safe_integers(schema), self.reference)
        reference = {"$ref": SCHEMA_REFERENCE + name}
        if "default" in schema:
            reference["default"] = schema["default"]
        if "description" in schema and len(self._descriptions[name]) > 1:
            reference["description"] = schema["description"]
        return reference

    def _reference_text_type(self, schema: Schema) -> Schema:
        if (kind := schema.get("format")) in FORMAT_TYPES:
            name, description = FORMAT_TYPES[kind]
            definition = {"type": "string", "format": kind}
            schema = {key: value for key, value in schema.items() if key != "pattern"}
        else:
            name, description = TEXT_TYPES[schema["pattern"]]
            definition = {"type": "string", "pattern": schema["pattern"]}
        implied = IMPLIED_LIMITS.get(name, {})
        self._value_types[name] = {**definition, **implied, "description": description}
        limits = {
            key: value for key, value in schema.items() if key not in definition and implied.get(key) != value
        }
        return {"$ref": SCHEMA_REFERENCE + name} | limits

    def _reference_nullable_text(self, schema: Schema) -> Schema:
        outer = {key: schema[key] for key in USE_KEYWORDS if key in schema}
        inner = {key: value for key, value in schema.items() if key not in outer} | {"type": "string"}
        return {"anyOf": [self._reference_text_type(inner), {"type": "null"}]} | outer

    def _reference_any_object(self, schema: Schema) -> Schema:
        description = "An object with arbitrary fields."
        self._value_types[ANY_OBJECT] = {
            "type": "object",
            "additionalProperties": True,
            "description": description,
        }
        return {"$ref": SCHEMA_REFERENCE + ANY_OBJECT} | {
            key: value for key, value in schema.items() if key != "type"
        }

    def to_components(self, examples: Mapping[str, Any] | None = None) -> dict[str, Schema]:
        """Return the components by name. `examples` has the examples of some of them."""
        components = {name: self._build_component(name) for name in sorted(self._schemas)}
        # Building the other components has collected these, so they come last.
        components |= self._value_types
        for name, example in (examples or {}).items():
            components[name]["examples"] = [example]
        return components

    def _build_component(self, name: str) -> Schema:
        definition = {key: value for key, value in self._schemas[name].items() if key != "title"}
        component = map_subschemas(definition, self.reference)
        descriptions = self._descriptions[name]
        description = next(iter(descriptions)) if len(descriptions) == 1 else ""
        return component | ({"description": description} if description else {})


def limit_to_safe_integers(schema: Schema) -> Schema:
    """Return the schema with the largest integer that JavaScript represents exactly as its maximum.

    The limit of the database column is larger, so tools that read the document could not represent it.
    """
    return schema | {"maximum": MAX_SAFE_INTEGER} if schema.get("maximum") == MAX_INTEGER else schema


def map_subschemas(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return a copy of the schema in which `change` was applied to its direct subschemas."""
    changed: dict[str, Any] = dict(schema)
    for key, value in schema.items():
        if key in SCHEMA_KEYWORDS and isinstance(value, dict):
            changed[key] = change(value)
        elif key in SCHEMA_LIST_KEYWORDS:
            changed[key] = [change(item) for item in value]
        elif key in SCHEMA_MAP_KEYWORDS:
            # A schema may also be true or false.
            changed[key] = {
                name: change(item) if isinstance(item, dict) else item for name, item in value.items()
            }
    return changed
