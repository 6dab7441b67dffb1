"""Placeholders such as `{{user.name}}`, filled from the data of a prompt in one pass."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from prompts.assembly.data_inventory import WHOLE, is_hidden, words
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import NOTHING, Data, Json, Text
from prompts.assembly.segments import Piece
from prompts.assembly.text import cut, single_line

OPEN, CLOSE = "{{", "}}"
# Each becomes segments of its own; a template with more is a mistake or an attack.
MOST = 10_000


class Stretch(NamedTuple):
    """Literal text (no path), a placeholder with the names on its path, or one that was never closed."""

    text: str
    path: tuple[str, ...] = ()
    is_unclosed: bool = False


def expanded(template: Text, data: Data | None, where: str) -> list[Piece]:
    """The template with values in place, each with its own origin; what has no value stays as written.

    A value is never read for placeholders itself, so data cannot reach for other data.
    """
    if OPEN not in template.text:
        return [Piece(template.text, template.origin)]
    if template.text.count(OPEN) > MOST:
        raise AssemblyError(where, f"has more than {MOST:,} placeholders")
    held = data or Data()
    pieces = []
    for stretch in stretches(template.text):
        value = found(held.values, stretch, where)
        if value is None:
            pieces.append(Piece(stretch.text, template.origin))
        else:
            pieces.append(Piece(inserted(value, stretch), held.origin))
    return [piece for piece in pieces if piece.text]


def unfilled(template: Text, data: Data | None, where: str) -> list[str]:
    """What a reader should know: placeholders left as written, each once."""
    if OPEN not in template.text:
        return []
    values = data.values if data else NOTHING
    said: dict[str, None] = {}
    for stretch in stretches(template.text):
        shown = cut(single_line(stretch.text), 60)
        if stretch.is_unclosed:
            said[f"{where}: the placeholder {shown} is never closed"] = None
        elif stretch.path and found(values, stretch, where) is None:
            said[f"{where}: there is no value for {shown}"] = None
    return list(said)


def stretches(text: str) -> Iterator[Stretch]:
    """The text in order, cut at its placeholders; looks at every character a fixed number of times."""
    place = 0
    while (start := text.find(OPEN, place)) >= 0:
        yield Stretch(text[place:start])
        end = text.find(CLOSE, start)
        if end < 0:
            yield Stretch(text[start:], is_unclosed=True)
            return
        # The nearest opening belongs to this closing; an earlier one was never closed.
        nearest = text.rfind(OPEN, start, end)
        yield Stretch(text[start:nearest], is_unclosed=nearest - start > 1)
        names = text[nearest + 2 : end].split(".")
        place = end + 2
        yield Stretch(text[nearest:place], tuple([name.strip() for name in names]))
    yield Stretch(text[place:])


def found(values: Json, stretch: Stretch, where: str) -> Any:
    """What a placeholder names; a null is no value, and a hidden field is never looked up."""
    if not stretch.path:
        return None
    if any(map(is_hidden, stretch.path)):
        raise AssemblyError(
            where, f"the placeholder {cut(single_line(stretch.text), 60)} names a hidden field"
        )
    value: Any = values
    for name in stretch.path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def inserted(value: Any, stretch: Stretch) -> str:
    """A string as it is, anything else as the inventory writes it, but whole."""
    return value if isinstance(value, str) else words(value, WHOLE, f"data.values.{'.'.join(stretch.path)}")
