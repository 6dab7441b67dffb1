"""Format the data inventory: a table with the key, type and sample of each value in `ctx/`.

Samples of fields whose name begins with `_`, or that the data lists as hidden, are not shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from json import JSONEncoder
from typing import Any, NamedTuple

from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import EMPTY_OBJECT, Data, Limits, PromptInputs
from prompts.assembly.segments import TextChunk, TextChunks
from prompts.assembly.text import format_code_span, normalize_line_ends
from prompts.assembly.tool_signatures import ContextSignature, parse_context_signature

INVENTORY_HEADER = "Available in `ctx/`:\n\n| Key | Type | Sample |\n|-----|------|--------|"
HIDDEN_FIELDS_NOTE = (
    "\n\nNote: Firewalled fields (prefixed with `_`) show `[Hidden]` in the Sample column\n"
    "but are available in your program at runtime."
)
# The note for data with hidden names. HIDDEN_FIELDS_NOTE is the text of the layout's specification.
HIDDEN_NAMES_NOTE = HIDDEN_FIELDS_NOTE.replace(
    "(prefixed with `_`)", "(prefixed with `_`, or hidden by name)"
)
HIDDEN_VALUE = "[Hidden]"
UNKNOWN_TYPE = ":any"
# The same limit as in json_codec, which does not check values that were built in Python.
MAX_DEPTH = 64
# The JSON encoder does not escape these characters. Most of them are line ends, which would break a row.
LINE_END_ESCAPES = str.maketrans(
    {"\x7f": "\\u007f", "\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
encode_json_string = JSONEncoder(ensure_ascii=False).encode
NO_SIGNATURE = ContextSignature(EMPTY_OBJECT)
PLAIN_NAME_PATTERN = re.compile(r"[\w?!*+/.-]+")


class SampleLimits(NamedTuple):
    """How many list items and string characters a sample shows (None means all), and the hidden names."""

    items: int | None = None
    characters: int | None = None
    hidden: frozenset[str] = frozenset()


def is_hidden_field(name: str, hidden: frozenset[str] = frozenset()) -> bool:
    """Tell whether a field is firewalled: programs may read it, prompts never show it."""
    return name.startswith("_") or name in hidden


def build_data_inventory(inputs: PromptInputs) -> TextChunks:
    """Build the table, with the keys in their order in the data; return no chunks if there is no data."""
    data = inputs.data
    if data is None:
        return ()
    types, cuts = get_data_types(data), get_sample_limits(inputs.limits, data)
    if not data.values:
        return ()
    rows = [
        format_inventory_row(key, types.get(key, UNKNOWN_TYPE), value, cuts)
        for key, value in data.values.items()
    ]
    return [
        TextChunk(INVENTORY_HEADER),
        *[TextChunk(text, data.origin) for text in rows],
        TextChunk(HIDDEN_NAMES_NOTE if data.hidden else HIDDEN_FIELDS_NOTE),
    ]


def format_inventory_row(key: str, kind: str, value: Any, cuts: SampleLimits) -> str:
    """Format one table row; `|` is escaped so that a value cannot start another cell."""
    name, sample = format_code_span(f"ctx/{escape_string(key)}"), format_sample(key, value, cuts)
    return f"\n| {escape_pipes(name)} | `{kind}` | {escape_pipes(sample)} |"


def escape_pipes(cell: str) -> str:
    # Backslashes in the cell are already doubled, so the backslash added here always escapes the `|`.
    return cell.replace("|", "\\|")


def format_sample(key: str, value: Any, cuts: SampleLimits) -> str:
    """Format the sample of a value as a code span; after a truncated list follows its full length."""
    if is_hidden_field(key, cuts.hidden):
        return HIDDEN_VALUE
    path = f"data.values.{key}"
    if isinstance(value, list | tuple):
        items, count = format_list_items(value, cuts, path, 0)
        return format_code_span(items) + count
    return format_code_span(format_value(value, cuts, path))


def format_value(value: Any, cuts: SampleLimits, path: str, depth: int = 0) -> str:
    """Format a value as program text; hidden fields are masked at any depth."""
    if depth > MAX_DEPTH:
        raise AssemblyError(path, f"is nested more than {MAX_DEPTH} deep")
    formatter = VALUE_FORMATTERS.get(type(value))
    if formatter is not None:
        return formatter(value, cuts, path, depth)
    if isinstance(value, Mapping):
        return _format_mapping(value, cuts, path, depth)
    raise AssemblyError(path, "is not a value that JSON knows")


def format_list_items(values: Sequence[Any], cuts: SampleLimits, path: str, depth: int) -> tuple[str, str]:
    """Format a list; when it is truncated, also return a note with its full length."""
    items = [format_value(value, cuts, path, depth + 1) for value in values[: cuts.items]]
    if len(items) == len(values):
        return f"[{', '.join(items)}]", ""
    return f"[{', '.join(items)}, ...]", f" ({len(values):,} items)"


def _format_list(value: Sequence[Any], cuts: SampleLimits, path: str, depth: int) -> str:
    return "".join(format_list_items(value, cuts, path, depth))


def _format_mapping(value: Mapping[str, Any], cuts: SampleLimits, path: str, depth: int) -> str:
    fields = []
    for name, field in value.items():
        is_hidden = is_hidden_field(name, cuts.hidden)
        text = HIDDEN_VALUE if is_hidden else format_value(field, cuts, path, depth + 1)
        fields.append(f"{format_field_name(name)}: {text}")
    return f"{{{', '.join(fields)}}}"


def _format_text(value: str, cuts: SampleLimits, path: str, depth: int) -> str:
    value, limit = normalize_line_ends(value), cuts.characters
    is_cut = limit is not None and len(value) > limit
    return f'"{escape_string(value[:limit])}{"…" if is_cut else ""}"'


def _format_number(value: float, cuts: SampleLimits, path: str, depth: int) -> str:
    try:
        return repr(value)
    except ValueError:
        # Python limits the conversion of integers to text (sys.set_int_max_str_digits).
        raise AssemblyError(path, "is too long a number") from None


def _format_flag(value: bool | None, cuts: SampleLimits, path: str, depth: int) -> str:
    return "nil" if value is None else "true" if value else "false"


VALUE_FORMATTERS: dict[type, Callable[[Any, SampleLimits, str, int], str]] = {
    str: _format_text,
    int: _format_number,
    float: _format_number,
    bool: _format_flag,
    type(None): _format_flag,
    dict: _format_mapping,
    list: _format_list,
    tuple: _format_list,
}


def escape_string(text: str) -> str:
    """Escape quotes, backslashes and line ends, as in a JSON string."""
    escaped = encode_json_string(text)[1:-1]
    return escaped if escaped.isascii() and "\x7f" not in escaped else escaped.translate(LINE_END_ESCAPES)


def format_field_name(name: str) -> str:
    """Return a plain name unchanged, and any other name in quotes."""
    return name if PLAIN_NAME_PATTERN.fullmatch(name) else f'"{escape_string(name)}"'


def get_sample_limits(limits: Limits, data: Data) -> SampleLimits:
    """Return the limits for samples, each at least 1, and the names that the data hides."""
    for name in ("list_sample", "string_truncate"):
        if getattr(limits, name) < 1:
            raise AssemblyError(f"limits.{name}", "must be at least 1")
    return SampleLimits(limits.list_sample, limits.string_truncate, frozenset(data.hidden))


def get_data_types(data: Data) -> Mapping[str, str]:
    return parse_data_signature(data).types


def parse_data_signature(data: Data) -> ContextSignature:
    if not data.signature.strip():
        return NO_SIGNATURE
    return parse_context_signature(data.signature, "data.signature")


def list_data_problems(inputs: PromptInputs) -> list[str]:
    """List values without a type in the signature, and required types without a value."""
    if inputs.data is None:
        return []
    types, values = get_data_types(inputs.data), inputs.data.values
    untyped = [key for key in values if key not in types]
    missing = [key for key, kind in types.items() if key not in values and not kind.endswith("?")]
    problems = [(untyped, "has no type for"), (missing, "promises values that are not there:")]
    return [f"data.signature: {problem} {summarize_names(keys)}" for keys, problem in problems if keys]


def list_shortened_values(data: Data | None, limits: Limits) -> list[str]:
    """List the keys whose sample shows only a part of the value."""
    if data is None:
        return []
    hidden = frozenset(data.hidden)
    return [
        key
        for key, value in data.values.items()
        if not is_hidden_field(key, hidden) and _is_shortened(value, limits, hidden)
    ]


def _is_shortened(value: Any, limits: Limits, hidden: frozenset[str]) -> bool:
    if isinstance(value, str):
        return len(value) > limits.string_truncate
    if isinstance(value, Mapping):
        return any(
            _is_shortened(item, limits, hidden)
            for name, item in value.items()
            if not is_hidden_field(name, hidden)
        )
    if isinstance(value, list | tuple):
        return len(value) > limits.list_sample or any(_is_shortened(item, limits, hidden) for item in value)
    return False


def summarize_names(names: Sequence[str]) -> str:
    """Join the first five names and count the rest, so that a long list does not hide other problems."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more:,} more" if more > 0 else "")
