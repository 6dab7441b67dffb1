"""Functions that build JSON schemas, for request validation and for the OpenAPI document.

A schema with a `title` is a named component of the document, and a type of generated clients.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db import models

from core.db.fields import ProseField
from core.db.line_lists import LineListField
from core.timezones import validate_timezone

Schema = dict[str, Any]

# Characters that a single-line text must not contain: control characters and all line breaks.
CONTROL_CHARACTERS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
LINE_PATTERN = f"^[^{CONTROL_CHARACTERS}]*$"
# Surrounding whitespace is stripped, so a required line needs at least one other character.
NONBLANK_LINE_PATTERN = rf"^[^{CONTROL_CHARACTERS}]*[^\s{CONTROL_CHARACTERS}][^{CONTROL_CHARACTERS}]*$"
PROSE_CONTROL_CHARACTERS = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"
PROSE_PATTERN = f"^[^{PROSE_CONTROL_CHARACTERS}]*$"
# Like PROSE_PATTERN, but also without the noncharacters that files must not contain.
FILE_PATTERN = rf"^[^{PROSE_CONTROL_CHARACTERS}\ufffe\uffff]*$"
SPACES = r"\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Optional whitespace, then at least one other character. The two sets do not overlap: no backtracking.
NONBLANK_PROSE_PATTERN = rf"^[{SPACES}]*[^\s{PROSE_CONTROL_CHARACTERS}][^{PROSE_CONTROL_CHARACTERS}]*$"
SLUG_PATTERN = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
DIGEST_PATTERN = "^[0-9a-f]{64}$"
MAX_INTEGER = 2**63 - 1
# Formats that no pattern can describe. Services check them and report errors with their own messages.
TIME_ZONE_FORMAT = "iana-time-zone"
FRONT_MATTER_FORMAT = "front-matter"
SKILL_FILE_FORMAT = "skill-file"
RELATIVE_PATH_FORMAT = "relative-path"
ABSOLUTE_PATH_FORMAT = "absolute-path"
FOLDER_FORMAT = "folder-path"
FILE_NAME_FORMAT = "file-name"
SIGNATURE_FORMAT = "signature"
JSON_OBJECT_FORMAT = "json-object"
PATH_PATTERN_FORMAT = "path-pattern"
WEBHOOK_URL_FORMAT = "webhook-url"


def text_schema(most: int, *, pattern: str = PROSE_PATTERN, least: int = 0, **more: Any) -> Schema:
    return (
        {"type": "string", "maxLength": most, "pattern": pattern}
        | ({"minLength": least} if least else {})
        | more
    )


def line_schema(most: int, *, least: int = 0, **more: Any) -> Schema:
    return text_schema(most, pattern=NONBLANK_LINE_PATTERN if least else LINE_PATTERN, least=least, **more)


def prose_schema(most: int, *, least: int = 0, **more: Any) -> Schema:
    return text_schema(most, pattern=NONBLANK_PROSE_PATTERN if least else PROSE_PATTERN, least=least, **more)


def slug_schema(**more: Any) -> Schema:
    return {"type": "string", "pattern": SLUG_PATTERN, "minLength": 1, "maxLength": 64} | more


def name_schema(most: int = 64, **more: Any) -> Schema:
    return {"type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": most} | more


def integer_schema(least: int = 0, most: int = MAX_INTEGER, **more: Any) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most} | more


def boolean_schema(**more: Any) -> Schema:
    return {"type": "boolean"} | more


def datetime_schema(**more: Any) -> Schema:
    return {"type": "string", "format": "date-time"} | more


def enum_schema(values: Iterable[str], **more: Any) -> Schema:
    return {"type": "string", "enum": list(values)} | more


def array_schema(item: Schema, *, most: int = 200, **more: Any) -> Schema:
    return {"type": "array", "items": item, "maxItems": most} | more


def any_object_schema(**more: Any) -> Schema:
    """Return the schema of an object with arbitrary keys."""
    return {"type": "object"} | more


def digest_schema(**more: Any) -> Schema:
    return {"type": "string", "pattern": DIGEST_PATTERN} | more


def nullable_schema(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str) and not {"enum", "title"} & set(schema):
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def object_schema(fields: Mapping[str, Schema], required: Iterable[str] | None = None, **more: Any) -> Schema:
    """Return the schema of an object with these fields and no others.

    `required` lists the fields that must be present; by default all must be.
    """
    names = list(fields if required is None else required)
    schema: Schema = {"type": "object", "properties": dict(fields), "additionalProperties": False}
    return schema | ({"required": names} if names else {}) | more


def page_schema(item: Schema) -> Schema:
    """Return the schema of one page of a list. Its title is that of the items and `Page`."""
    return object_schema(
        {
            "items": {"type": "array", "items": item},
            "next_cursor": nullable_schema({"type": "string"}),
        },
        **({"title": f"{item['title']}Page"} if "title" in item else {}),
    )


def to_camel_case(text: str) -> str:
    """Return a text in CamelCase: "user profile" and "user-profile" become "UserProfile"."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^0-9A-Za-z]+", text))


def model_field_schema(field: models.Field[Any, Any]) -> Schema:
    """Return the schema of a Django model field, derived from its type, choices and limits."""
    if field.choices:
        title = field.model.__name__ + to_camel_case(field.name)
        schema = enum_schema((str(value) for value, _ in field.flatchoices), title=title)
    else:
        schema = next(build(field) for kind, build in SCHEMA_BUILDERS.items() if isinstance(field, kind))
    return nullable_schema(schema) if field.null else schema


def get_line_format(field: models.Field[Any, Any]) -> Schema:
    return {"format": TIME_ZONE_FORMAT} if validate_timezone in field.validators else {}


def get_min_length(field: models.Field[Any, Any]) -> int:
    return 0 if field.blank else 1


# The first type that matches the field is used, so SlugField comes before its base class CharField.
SCHEMA_BUILDERS: dict[type[models.Field[Any, Any]], Callable[[Any], Schema]] = {
    LineListField: lambda field: array_schema(
        line_schema(field.item_length, least=1), most=field.max_items, uniqueItems=True
    ),
    ProseField: lambda field: prose_schema(field.max_length, least=get_min_length(field)),
    models.SlugField: lambda _: slug_schema(),
    models.CharField: lambda field: line_schema(
        field.max_length, least=get_min_length(field), **get_line_format(field)
    ),
    models.BooleanField: lambda _: boolean_schema(),
    models.DateTimeField: lambda _: datetime_schema(),
    models.PositiveIntegerField: lambda _: integer_schema(most=2**31 - 1),
}
