"""The data inventory: a typed table of what a program reads in `ctx/`, with samples, without secrets."""

import re
from collections.abc import Callable, Mapping, Sequence
from json import JSONEncoder
from typing import Any, NamedTuple

from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import NOTHING, Data, Limits, PromptInputs
from prompts.assembly.segments import Piece, Pieces
from prompts.assembly.text import code, normalised
from prompts.assembly.tool_signatures import context_types

OPENING = "Available in `ctx/`:\n\n| Key | Type | Sample |\n|-----|------|--------|"
NOTE = (
    "\n\nNote: Firewalled fields (prefixed with `_`) show `[Hidden]` in the Sample column\n"
    "but are available in your program at runtime."
)
HIDDEN = "[Hidden]"
UNKNOWN = ":any"
# As deep as inputs may be; a value made in the program has not been through the reader that checks.
DEEPEST = 64
# Python calls these line ends, and JSON lets them stand: a row must stay one line.
LINE_ENDS = str.maketrans({"\x7f": "\\u007f", "\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
in_quotes = JSONEncoder(ensure_ascii=False).encode
PLAIN = re.compile(r"[\w?!*+/.-]+")


class Cuts(NamedTuple):
    """How many items of a list and characters of a string are shown; None shows all."""

    items: int | None = None
    characters: int | None = None


WHOLE = Cuts()


def is_hidden(name: str) -> bool:
    """A firewalled field: programs may read it, prompts never show it."""
    return name.startswith("_")


def inventory(inputs: PromptInputs) -> Pieces:
    """The table, keys in the order of the values; nothing without data."""
    data = inputs.data
    if data is None:
        return ()
    types, cuts = types_of(data), cuts_of(inputs.limits)
    if not data.values:
        return ()
    rows = [row(key, types.get(key, UNKNOWN), value, cuts) for key, value in data.values.items()]
    return [Piece(OPENING), *[Piece(text, data.origin) for text in rows], Piece(NOTE)]


def row(key: str, kind: str, value: Any, cuts: Cuts) -> str:
    """One line of the table; `|` in a value cannot open another cell."""
    name, shown = code(f"ctx/{escaped_words(key)}"), sample(key, value, cuts)
    return f"\n| {piped(name)} | `{kind}` | {piped(shown)} |"


def piped(cell: str) -> str:
    # Backslashes stand doubled already, so the one before the bar is always an odd one: it escapes.
    return cell.replace("|", "\\|")


def sample(key: str, value: Any, cuts: Cuts) -> str:
    """A value as a reader of the table sees it; how long a cut list is stands outside the code."""
    if is_hidden(key):
        return HIDDEN
    path = f"data.values.{key}"
    if isinstance(value, list | tuple):
        shown, count = items(value, cuts, path, 0)
        return code(shown) + count
    return code(words(value, cuts, path))


def words(value: Any, cuts: Cuts, path: str, depth: int = 0) -> str:
    """A value as program text would show it; hidden fields stay hidden at any depth."""
    if depth > DEEPEST:
        raise AssemblyError(path, f"is nested more than {DEEPEST} deep")
    writer = WRITERS.get(type(value))
    if writer is not None:
        return writer(value, cuts, path, depth)
    if isinstance(value, Mapping):
        return _mapping(value, cuts, path, depth)
    raise AssemblyError(path, "is not a value that JSON knows")


def items(values: Sequence[Any], cuts: Cuts, path: str, depth: int) -> tuple[str, str]:
    """A list and, when it is cut, the note of how long it really is."""
    said = [words(value, cuts, path, depth + 1) for value in values[: cuts.items]]
    if len(said) == len(values):
        return f"[{', '.join(said)}]", ""
    return f"[{', '.join(said)}, ...]", f" ({len(values):,} items)"


def _list(value: Sequence[Any], cuts: Cuts, path: str, depth: int) -> str:
    return "".join(items(value, cuts, path, depth))


def _mapping(value: Mapping[str, Any], cuts: Cuts, path: str, depth: int) -> str:
    said = [
        f"{field_name(name)}: {HIDDEN if is_hidden(name) else words(field, cuts, path, depth + 1)}"
        for name, field in value.items()
    ]
    return f"{{{', '.join(said)}}}"


def _text(value: str, cuts: Cuts, path: str, depth: int) -> str:
    value, limit = normalised(value), cuts.characters
    is_cut = limit is not None and len(value) > limit
    return f'"{escaped_words(value[:limit])}{"…" if is_cut else ""}"'


def _number(value: float, cuts: Cuts, path: str, depth: int) -> str:
    try:
        return repr(value)
    except ValueError:
        # Python refuses to write whole numbers of more than some thousand digits.
        raise AssemblyError(path, "is too long a number") from None


def _flag(value: bool | None, cuts: Cuts, path: str, depth: int) -> str:
    return "nil" if value is None else "true" if value else "false"


WRITERS: dict[type, Callable[[Any, Cuts, str, int], str]] = {
    str: _text,
    int: _number,
    float: _number,
    bool: _flag,
    type(None): _flag,
    dict: _mapping,
    list: _list,
    tuple: _list,
}


def escaped_words(text: str) -> str:
    """Text on one line, with quotes, backslashes and line ends written as programs write them."""
    said = in_quotes(text)[1:-1]
    return said if said.isascii() and "\x7f" not in said else said.translate(LINE_ENDS)


def field_name(name: str) -> str:
    """A name as it is, or in quotes when it could be mistaken for more than a name."""
    return name if PLAIN.fullmatch(name) else f'"{escaped_words(name)}"'


def cuts_of(limits: Limits) -> Cuts:
    """How much is shown; nothing at all would be no sample."""
    for name in ("list_sample", "string_truncate"):
        if getattr(limits, name) < 1:
            raise AssemblyError(f"limits.{name}", "must be at least 1")
    return Cuts(limits.list_sample, limits.string_truncate)


def types_of(data: Data) -> Mapping[str, str]:
    return context_types(data.signature, "data.signature") if data.signature.strip() else NOTHING


def data_problems(inputs: PromptInputs) -> list[str]:
    """Values without a type, and types that promise a value there is none of."""
    if inputs.data is None:
        return []
    types, values = types_of(inputs.data), inputs.data.values
    untyped = [key for key in values if key not in types]
    missing = [key for key, kind in types.items() if key not in values and not kind.endswith("?")]
    said = [(untyped, "has no type for"), (missing, "promises values that are not there:")]
    return [f"data.signature: {what} {named(keys)}" for keys, what in said if keys]


def named(names: Sequence[str]) -> str:
    """The first few names; a thousand would hide the other problems."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more:,} more" if more > 0 else "")
