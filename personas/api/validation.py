"""JSON Schema validation, with a readable message for each invalid value."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from core.text.timestamps import parse_timestamp
from personas.api.problems import FieldError, json_pointer
from personas.api.schema import (
    FILE_PATTERN,
    NONBLANK_PROSE_PATTERN,
    PROSE_CONTROL_CHARACTERS,
    PROSE_PATTERN,
    Schema,
)

MAX_ERRORS = 20
# Patterns of multi-line texts. Error messages about them name the line and the character.
PROSE_PATTERNS = frozenset({PROSE_PATTERN, NONBLANK_PROSE_PATTERN, FILE_PATTERN})
PROSE_CONTROL = re.compile(rf"[{PROSE_CONTROL_CHARACTERS}\ufffe\uffff]")
JSON_TYPE_LABELS = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "number": "a number",
}
format_checker = FormatChecker(formats=())


@format_checker.checks("date-time")  # type: ignore[untyped-decorator]  # the library is not typed here
def is_aware_datetime(value: object) -> bool:
    """Check the JSON Schema format `date-time`. The timestamp must have a UTC offset."""
    if not isinstance(value, str):
        return True
    try:
        parse_timestamp(value)
    except ValueError:
        return False
    return True


def validate_full_pattern(_: Any, pattern: str, value: object, schema: Schema) -> Iterator[ValidationError]:
    """Implement the keyword `pattern`: the pattern must match the whole text.

    A text longer than maxLength is skipped: `maxLength` rejects it anyway, and matching long texts would
    allow regular-expression denial of service (ReDoS).
    """
    is_short = isinstance(value, str) and len(value) <= schema.get("maxLength", len(value))
    # Use fullmatch, because `$` also matches before a final line break.
    if is_short and not re.fullmatch(pattern, str(value)):
        yield ValidationError("does not match")


def bounded_list_validator(keyword: str) -> Callable[..., Iterator[ValidationError]]:
    """Return an implementation of a list keyword (`items`, `uniqueItems`) that skips lists over maxItems.

    The keyword `maxItems` rejects such a list anyway, so checking each item would waste time.
    """
    validate = Draft202012Validator.VALIDATORS[keyword]

    def validate_bounded(
        validator: Any, keyword_value: Any, value: object, schema: Schema
    ) -> Iterator[ValidationError]:
        if isinstance(value, list) and len(value) <= schema.get("maxItems", len(value)):
            yield from validate(validator, keyword_value, value, schema) or ()

    return validate_bounded


def validate_min_length(_: Any, least: int, value: object, schema: Schema) -> Iterator[ValidationError]:
    """Implement the keyword `minLength`: a text of spaces alone counts as empty, as in forms."""
    if isinstance(value, str) and (len(value) < least or (least and not value.strip())):
        yield ValidationError("is too short")


def skip_condition(*_: Any) -> Iterator[ValidationError]:
    """Implement the keyword `if`: services check which fields go together, with messages of their own."""
    return iter(())


KEYWORD_VALIDATORS = {
    "if": skip_condition,
    "minLength": validate_min_length,
    "pattern": validate_full_pattern,
    "items": bounded_list_validator("items"),
    "uniqueItems": bounded_list_validator("uniqueItems"),
}
ApiSchemaValidator = extend(Draft202012Validator, KEYWORD_VALIDATORS)


def build_validator(schema: Schema) -> Draft202012Validator:
    validator: Draft202012Validator = ApiSchemaValidator(schema, format_checker=format_checker)
    return validator


def find_schema_errors(validator: Draft202012Validator, value: object) -> list[FieldError]:
    """Return the schema errors of a value, at most MAX_ERRORS."""
    errors: dict[FieldError, None] = {}
    for error in validator.iter_errors(value):
        errors |= dict.fromkeys(build_field_errors(error))
        if len(errors) >= MAX_ERRORS:
            break
    return list(errors)[:MAX_ERRORS]


def build_field_errors(error: ValidationError) -> Iterator[FieldError]:
    path = list(error.absolute_path)
    if error.validator == "required":
        # The library reports one error per missing field, and names the field only in the message.
        names = [name for name in error.validator_value if name not in error.instance]
        yield from (FieldError("This field is required.", json_pointer([*path, name])) for name in names)
    elif error.validator == "additionalProperties":
        unknown = [name for name in error.instance if name not in error.schema.get("properties", {})]
        yield from (FieldError("Unknown field.", json_pointer([*path, name])) for name in unknown)
    else:
        yield FieldError(describe_schema_error(error), json_pointer(path))


def describe_schema_error(error: ValidationError) -> str:
    if error.schema.get("format") == "date" and error.validator in ("pattern", "format"):
        return "Must be a date, for example 2026-03-07."
    if error.validator == "pattern" and isinstance(error.instance, str):
        return describe_pattern_error(error.validator_value, error.instance)
    message = ERROR_MESSAGES.get(str(error.validator), "Contains characters that are not allowed.")
    return message if isinstance(message, str) else message(error.validator_value, error.instance)


def describe_pattern_error(pattern: str, text: str) -> str:
    if pattern in PROSE_PATTERNS and (match := PROSE_CONTROL.search(text)):
        line = len(re.findall(r"\r\n|\r|\n", text[: match.start()])) + 1
        return f"Line {line}: The character U+{ord(match.group()):04X} is not allowed."
    return "Contains characters that are not allowed." if text.strip() else "Must not be empty."


def describe_type_error(names: str | list[str], _: object) -> str:
    kinds = [names] if isinstance(names, str) else names
    return f"Must be {' or '.join(JSON_TYPE_LABELS[name] for name in kinds)}."


ERROR_MESSAGES: dict[str, str | Callable[[Any, Any], str]] = {
    "type": describe_type_error,
    "anyOf": "Does not match any of the allowed forms.",
    "enum": lambda values, _: f"Must be one of: {', '.join(map(str, values))}.",
    "maxLength": lambda most, value: f"Has {len(value)} characters; the limit is {most}.",
    "minLength": "Must not be empty.",
    "minProperties": "Too few items.",
    "maxProperties": "Too many items.",
    "minItems": "Must not be empty.",
    "maxItems": lambda most, _: f"At most {most} items are allowed.",
    "minimum": lambda least, _: f"Must be {least} or more.",
    "maximum": lambda most, _: f"Must be {most} or less.",
    "format": "Must be a time with a UTC offset, for example 2026-03-07T14:55:05Z.",
    "uniqueItems": "Contains duplicates.",
}
