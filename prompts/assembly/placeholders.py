"""Placeholders such as `{{user.name}}`, filled from the data of a prompt in one pass."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from prompts.assembly.data_inventory import NO_SAMPLE_LIMITS, format_value, is_hidden_field
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import EMPTY_OBJECT, Data, JsonObject, Text
from prompts.assembly.segments import TextChunk
from prompts.assembly.text import collapse_whitespace, truncate_text

OPENING_BRACES, CLOSING_BRACES = "{{", "}}"
# Each becomes segments of its own; a template with more is a mistake or an attack.
MAX_PLACEHOLDERS = 10_000


class TemplateSpan(NamedTuple):
    """Literal text (no path), a placeholder with the names on its path, or one that was never closed."""

    text: str
    path: tuple[str, ...] = ()
    is_unclosed: bool = False


def expand_placeholders(template: Text, data: Data | None, where: str) -> list[TextChunk]:
    """The template with values in place, each with its own origin; what has no value stays as written.

    A value is never read for placeholders itself, so data cannot reach for other data.
    """
    if OPENING_BRACES not in template.text:
        return [TextChunk(template.text, template.origin)]
    if template.text.count(OPENING_BRACES) > MAX_PLACEHOLDERS:
        raise AssemblyError(where, f"has more than {MAX_PLACEHOLDERS:,} placeholders")
    held = data or Data()
    pieces = []
    for stretch in split_template(template.text):
        value = find_placeholder_value(held.values, stretch, where)
        if value is None:
            pieces.append(TextChunk(stretch.text, template.origin))
        else:
            pieces.append(TextChunk(format_placeholder_value(value, stretch), held.origin))
    return [piece for piece in pieces if piece.text]


def list_placeholder_problems(template: Text, data: Data | None, where: str) -> list[str]:
    """What a reader should know: placeholders left as written, each once."""
    if OPENING_BRACES not in template.text:
        return []
    values = data.values if data else EMPTY_OBJECT
    said: dict[str, None] = {}
    for stretch in split_template(template.text):
        shown = truncate_text(collapse_whitespace(stretch.text), 60)
        if stretch.is_unclosed:
            said[f"{where}: the placeholder {shown} is never closed"] = None
        elif stretch.path and find_placeholder_value(values, stretch, where) is None:
            said[f"{where}: there is no value for {shown}"] = None
    return list(said)


def split_template(text: str) -> Iterator[TemplateSpan]:
    """The text in order, cut at its placeholders; looks at every character a fixed number of times."""
    place = 0
    while (start := text.find(OPENING_BRACES, place)) >= 0:
        yield TemplateSpan(text[place:start])
        end = text.find(CLOSING_BRACES, start)
        if end < 0:
            yield TemplateSpan(text[start:], is_unclosed=True)
            return
        # The nearest opening belongs to this closing; an earlier one was never closed.
        nearest = text.rfind(OPENING_BRACES, start, end)
        yield TemplateSpan(text[start:nearest], is_unclosed=nearest - start > 1)
        names = text[nearest + 2 : end].split(".")
        place = end + 2
        yield TemplateSpan(text[nearest:place], tuple([name.strip() for name in names]))
    yield TemplateSpan(text[place:])


def find_placeholder_value(values: JsonObject, stretch: TemplateSpan, where: str) -> Any:
    """What a placeholder names; a null is no value, and a hidden field is never looked up."""
    if not stretch.path:
        return None
    if any(map(is_hidden_field, stretch.path)):
        raise AssemblyError(
            where,
            f"the placeholder {truncate_text(collapse_whitespace(stretch.text), 60)} names a hidden field",
        )
    value: Any = values
    for name in stretch.path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def format_placeholder_value(value: Any, stretch: TemplateSpan) -> str:
    """A string as it is, anything else as the inventory writes it, but whole."""
    return (
        value
        if isinstance(value, str)
        else format_value(value, NO_SAMPLE_LIMITS, f"data.values.{'.'.join(stretch.path)}")
    )
