"""Read values from list entries such as `- **Name:** Clawd`, as in the workspace files of OpenClaw.

An entry that gives its whole text as a value is removed from the body. Everything else stays in the body:
other entries, entries whose value is a placeholder, and entries of which only a part is a value, such as an
emoji with a remark behind it.
"""

import re
from collections.abc import Callable, Collection
from typing import NamedTuple
from zoneinfo import available_timezones

ENTRY = re.compile(r"^ {0,3}[-*+] +\*\*(?P<label>[^*\n:]+?):?\*\*:?[ \t]*(?P<value>[^\n]*?)[ \t]*$")
HEADING = re.compile(r"^ {0,3}##+ ")
# A value that is still to be filled in: text in italics, parentheses or brackets, or only dashes and dots.
PLACEHOLDER = re.compile(r"(?:([_*]).*\1|\(.*\)|\[.*\]|<.*>|[-–—…. ]*)")
KEYS_BY_LABEL = {"time zone": "timezone"}
# Maximum number of characters of a value, the same as in the records.
MAX_LENGTHS = {"emoji": 32, "creature": 120, "vibe": 200, "name": 80, "timezone": 64, "location": 120}


class BulletValues(NamedTuple):
    """The values by key, and the body without the entries that are completely values."""

    values: dict[str, str]
    body: str


def read_bullet_values(body: str, keys: Collection[str]) -> BulletValues:
    """Read the values of these keys from the entries before the first subheading; the first one counts."""
    values: dict[str, str] = {}
    lines = body.split("\n")
    kept: list[str] = []
    for index, line in enumerate(lines):
        if HEADING.match(line):
            kept += lines[index:]
            break
        entry = ENTRY.match(line)
        key = get_entry_key(entry["label"]) if entry else ""
        value = read_value(key, entry["value"]) if entry and key in keys and key not in values else ""
        if value:
            values[key] = value
        if not entry or not value or value != entry["value"] or has_continuation(lines, index):
            kept.append(line)
    return BulletValues(values, "\n".join(kept) if values else body)


def get_entry_key(label: str) -> str:
    name = " ".join(label.lower().split())
    return KEYS_BY_LABEL.get(name, name)


def has_continuation(lines: list[str], index: int) -> bool:
    """Tell whether an indented line follows, which belongs to the entry."""
    return (
        index + 1 < len(lines) and lines[index + 1].startswith((" ", "\t")) and bool(lines[index + 1].strip())
    )


def read_value(key: str, text: str) -> str:
    """Return the value of an entry, or an empty string if it has none."""
    if PLACEHOLDER.fullmatch(text):
        return ""
    value = READERS[key](text) if key in READERS else text
    return value if len(value) <= MAX_LENGTHS.get(key, 80) and value.isprintable() else ""


def read_emoji(text: str) -> str:
    """Return the first word, unless it is a word of letters."""
    first = text.split(maxsplit=1)[0]
    return "" if any(character.isalnum() and character.isascii() for character in first) else first


def read_timezone(text: str) -> str:
    """Return the first word if it names a time zone."""
    first = text.split(maxsplit=1)[0].strip("`,;")
    # `localtime` is a file on some systems, not a time zone.
    return first if first in available_timezones() - {"localtime"} else ""


READERS: dict[str, Callable[[str], str]] = {"emoji": read_emoji, "timezone": read_timezone}
