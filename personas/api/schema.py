"""The building blocks of bodies and answers: JSON Schema, written once, checked against and published."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db import models

from core.db.fields import ProseField

Shape = dict[str, Any]

# Control characters cannot be stored; a line has no line breaks either.
IN_LINE = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
LINE = f"^[^{IN_LINE}]*$"
# Surrounding spaces are taken off, so a line that must not be empty needs something else in it.
FILLED_LINE = rf"^[^{IN_LINE}]*[^\s{IN_LINE}][^{IN_LINE}]*$"
PROSE = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"
SLUG = r"^[a-z0-9]+(?:-[a-z0-9]+)*$"
WORD = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
LARGEST = 2**63 - 1


def text(most: int, *, pattern: str = PROSE, least: int = 0, **more: Any) -> Shape:
    return {"type": "string", "maxLength": most, "minLength": least, "pattern": pattern} | more


def line(most: int, *, least: int = 0, **more: Any) -> Shape:
    return text(most, pattern=FILLED_LINE if least else LINE, least=least, **more)


def prose(most: int, *, least: int = 0, **more: Any) -> Shape:
    return text(most, least=least, **more)


def slug(**more: Any) -> Shape:
    return {"type": "string", "pattern": SLUG, "minLength": 1, "maxLength": 64} | more


def word(most: int = 64, **more: Any) -> Shape:
    return {"type": "string", "pattern": WORD, "minLength": 1, "maxLength": most} | more


def whole(least: int = 0, most: int = LARGEST, **more: Any) -> Shape:
    return {"type": "integer", "minimum": least, "maximum": most} | more


def flag(**more: Any) -> Shape:
    return {"type": "boolean"} | more


def moment(**more: Any) -> Shape:
    return {"type": "string", "format": "date-time"} | more


def choice(values: Iterable[str], **more: Any) -> Shape:
    return {"type": "string", "enum": list(values)} | more


def listed(item: Shape, *, most: int = 200, **more: Any) -> Shape:
    return {"type": "array", "items": item, "maxItems": most} | more


def anything(**more: Any) -> Shape:
    """An object whose names are the caller's."""
    return {"type": "object"} | more


def digest(**more: Any) -> Shape:
    return {"type": "string", "pattern": "^[0-9a-f]{64}$"} | more


def nullable(shape: Shape) -> Shape:
    if isinstance(shape.get("type"), str) and "enum" not in shape:
        return shape | {"type": [shape["type"], "null"]}
    return {"anyOf": [shape, {"type": "null"}]}


def shape(fields: Mapping[str, Shape], required: Iterable[str] | None = None, **more: Any) -> Shape:
    """An object with these fields and no others; all of them, unless `required` says which."""
    needed = list(fields if required is None else required)
    made: Shape = {"type": "object", "properties": dict(fields), "additionalProperties": False}
    return made | ({"required": needed} if needed else {}) | more


def page_of(item: Shape) -> Shape:
    """One page of a list, as every list answers."""
    return shape(
        {
            "data": {"type": "array", "items": item},
            "next_cursor": nullable({"type": "string"}),
            "has_more": flag(),
        }
    )


def of_field(field: models.Field[Any, Any]) -> Shape:
    """What a column takes, said once by the model."""
    if field.choices:
        made = choice(str(value) for value, _ in field.flatchoices)
    else:
        made = next(told(field) for kind, told in COLUMNS.items() if isinstance(field, kind))
    return nullable(made) if field.null else made


def least(field: models.Field[Any, Any]) -> int:
    return 0 if field.blank else 1


# The first that fits counts; a slug is a line too.
COLUMNS: dict[type[models.Field[Any, Any]], Callable[[Any], Shape]] = {
    ProseField: lambda field: prose(field.max_length, least=least(field)),
    models.SlugField: lambda _: slug(),
    models.CharField: lambda field: line(field.max_length, least=least(field)),
    models.BooleanField: lambda _: flag(),
    models.DateTimeField: lambda _: moment(),
    models.PositiveIntegerField: lambda _: whole(most=2**31 - 1),
}
