"""Expand placeholders such as `{{user.name}}` with values from the data of a prompt, in one pass."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from prompts.assembly.data_inventory import SampleLimits, format_value, is_hidden_field
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import Data, Text
from prompts.assembly.segments import TextChunk
from prompts.assembly.text import collapse_whitespace, truncate_text

OPENING_BRACES, CLOSING_BRACES = "{{", "}}"
# Each placeholder becomes a segment; a template with more than this is a mistake or an attack.
MAX_PLACEHOLDERS = 10_000


class TemplateSpan(NamedTuple):
    """Literal text (no path), a placeholder with the names of its path, or an unclosed placeholder."""

    text: str
    path: tuple[str, ...] = ()
    is_unclosed: bool = False


def expand_placeholders(template: Text, data: Data | None, where: str) -> list[TextChunk]:
    """Replace placeholders by values of the data; placeholders without a value stay as written.

    Each value is a separate chunk, with the origin of the data. Placeholders inside values are not expanded,
    so data cannot refer to other data.
    """
    if OPENING_BRACES not in template.text:
        return [TextChunk(template.text, template.origin)]
    if template.text.count(OPENING_BRACES) > MAX_PLACEHOLDERS:
        raise AssemblyError(where, f"has more than {MAX_PLACEHOLDERS:,} placeholders")
    source = data or Data()
    chunks = []
    for span in split_template(template.text):
        value = find_placeholder_value(source, span, where)
        if value is None:
            chunks.append(TextChunk(span.text, template.origin))
        else:
            chunks.append(TextChunk(format_placeholder_value(value, span, source), source.origin))
    return [chunk for chunk in chunks if chunk.text]


def list_placeholder_problems(template: Text, data: Data | None, where: str) -> list[str]:
    """List the placeholders that were not replaced, each once."""
    if OPENING_BRACES not in template.text:
        return []
    source = data or Data()
    problems: dict[str, None] = {}
    for span in split_template(template.text):
        placeholder = truncate_text(collapse_whitespace(span.text), 60)
        if span.is_unclosed:
            problems[f"{where}: the placeholder {placeholder} is never closed"] = None
        elif span.path and find_placeholder_value(source, span, where) is None:
            problems[f"{where}: there is no value for {placeholder}"] = None
    return list(problems)


def split_template(text: str) -> Iterator[TemplateSpan]:
    """Split a template at its placeholders, in linear time."""
    position = 0
    while (start := text.find(OPENING_BRACES, position)) >= 0:
        yield TemplateSpan(text[position:start])
        end = text.find(CLOSING_BRACES, start)
        if end < 0:
            yield TemplateSpan(text[start:], is_unclosed=True)
            return
        # The closing braces belong to the nearest `{{` before them; an earlier `{{` was never closed.
        nearest = text.rfind(OPENING_BRACES, start, end)
        yield TemplateSpan(text[start:nearest], is_unclosed=nearest - start > 1)
        names = text[nearest + 2 : end].split(".")
        position = end + 2
        yield TemplateSpan(text[nearest:position], tuple([name.strip() for name in names]))
    yield TemplateSpan(text[position:])


def find_placeholder_value(data: Data, span: TemplateSpan, where: str) -> Any:
    """Look up the value of a placeholder; null counts as no value, hidden fields raise AssemblyError."""
    if not span.path:
        return None
    hidden = frozenset(data.hidden)
    if any(is_hidden_field(name, hidden) for name in span.path):
        raise AssemblyError(
            where,
            f"the placeholder {truncate_text(collapse_whitespace(span.text), 60)} names a hidden field",
        )
    value: Any = data.values
    for name in span.path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def format_placeholder_value(value: Any, span: TemplateSpan, data: Data) -> str:
    """Return a string unchanged, and any other value as in the data inventory, without truncation."""
    if isinstance(value, str):
        return value
    return format_value(
        value, SampleLimits(hidden=frozenset(data.hidden)), f"data.values.{'.'.join(span.path)}"
    )
