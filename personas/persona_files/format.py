"""Parse and render IDENTITY.md, USER.md and SOUL.md; unknown front matter keys are preserved.

Parsing normalizes the text: newlines become LF, and a byte order mark is removed. One blank line after the
front matter and one newline at the end of the file are not part of the body. Rendering writes known keys
first, in a fixed order and without their comments. All other front matter lines are kept in `extra`.
A known key that the front matter lacks is read from list entries of the body: see `bullets`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from core.text.front_matter import (
    BOM,
    FORBIDDEN_HEAD_RANGES,
    FORBIDDEN_RANGES,
    FrontMatterError,
    TextProblem,
    YamlBlock,
    find_character_problems,
    join_front_matter,
    normalize_newlines,
    parse_front_matter,
    raise_for_problems,
    split_front_matter,
)
from personas.persona_files.bullets import read_bullet_values

# Known front matter keys of IDENTITY.md and USER.md, in the order in which they are written.
IDENTITY_KEYS = ("name", "emoji", "creature", "vibe")
USER_KEYS = ("name", "timezone", "location")
ALL_KNOWN_KEYS = frozenset({*IDENTITY_KEYS, *USER_KEYS})

# Values that need no quotes in YAML start with a letter or a non-ASCII character. Numbers, dates and YAML
# indicators do not.
PLAIN_SCALAR_PATTERN = re.compile(r"[A-Za-z\u00a1-\U0010ffff].*")
# Words that need quotes, because some YAML parsers would read them as a boolean or null.
RESERVED_YAML_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
ESCAPED_CHARACTERS = re.compile(f"[{FORBIDDEN_RANGES}{FORBIDDEN_HEAD_RANGES}]")


class _PersonaFile:
    """Base class of parsed files.

    `keys` are the known front matter keys, `body` is the name of the field that holds the text after the
    front matter, and `extra` holds the other front matter lines.
    """

    keys: ClassVar[tuple[str, ...]]
    body: ClassVar[str]
    extra: str

    def __post_init__(self) -> None:
        """Normalize the field values, so that rendering and parsing them again returns the same values."""
        for key in self.keys:
            # The newline that ends a YAML block is not part of the value.
            self._set_field(key, normalize_newlines(getattr(self, key)).rstrip("\n"))
        self._set_field(self.body, normalize_newlines(getattr(self, self.body)))
        self._set_field("extra", _trim_extra_lines(self.extra))

    def _set_field(self, field: str, value: str) -> None:
        object.__setattr__(self, field, value)


@dataclass(frozen=True)
class IdentityFile(_PersonaFile):
    keys = IDENTITY_KEYS
    body = "text"

    name: str = ""
    emoji: str = ""
    creature: str = ""
    vibe: str = ""
    text: str = ""
    extra: str = ""


@dataclass(frozen=True)
class UserFile(_PersonaFile):
    keys = USER_KEYS
    body = "notes"

    name: str = ""
    timezone: str = ""
    location: str = ""
    notes: str = ""
    extra: str = ""


FileT = TypeVar("FileT", bound=_PersonaFile)


def parse_identity(text: str) -> IdentityFile:
    return _parse_file(IdentityFile, text)


def render_identity(identity: IdentityFile) -> str:
    return _render_file(identity)


def parse_user(text: str) -> UserFile:
    return _parse_file(UserFile, text)


def render_user(user: UserFile) -> str:
    return _render_file(user)


def parse_soul(text: str) -> str:
    """Return the text of SOUL.md, including any front matter, without byte order mark and with LF newlines.

    Raise FrontMatterError for forbidden characters.
    """
    soul = normalize_newlines(text.lstrip(BOM))
    raise_for_problems(find_character_problems(soul, "text", 1))
    return soul


def render_soul(text: str) -> str:
    return parse_soul(text)


def find_extra_problems(raw: str, known: Collection[str] = ALL_KNOWN_KEYS) -> tuple[TextProblem, ...]:
    """Return the problems in extra front matter lines: invalid YAML, or keys that have their own field."""
    raw = normalize_newlines(raw)
    try:
        blocks = parse_front_matter(raw)
    except FrontMatterError as error:
        return error.problems
    if "".join(block.source for block in blocks) != raw:
        return (TextProblem("", 1, "Leave this empty instead of writing empty braces."),)
    message = '"{}" has its own field. Remove it here.'
    return tuple(
        TextProblem(block.key, block.line, message.format(block.key))
        for block in blocks
        if block.key and block.key in known
    )


def _parse_file(kind: type[FileT], text: str) -> FileT:
    head, body, body_line = split_front_matter(text)
    problems = list(find_character_problems(body, kind.body, body_line))
    try:
        blocks = parse_front_matter(head, first_line=2)
    except FrontMatterError as error:
        raise FrontMatterError([*error.problems, *problems]) from error
    raise_for_problems([*_find_type_problems(blocks, kind.keys), *problems])
    values = {block.key: block.value for block in blocks if block.key in kind.keys}
    found = read_bullet_values(body, [key for key in kind.keys if key not in values])
    fields = found.values | values | {kind.body: found.body, "extra": _collect_extra(blocks, kind.keys)}
    return kind(**fields)


def _find_type_problems(blocks: tuple[YamlBlock, ...], known: tuple[str, ...]) -> Iterator[TextProblem]:
    for block in blocks:
        if block.key in known and not isinstance(block.value, str):
            type_name = "a list" if isinstance(block.value, list) else "a group of keys"
            yield TextProblem(block.key, block.line, f'"{block.key}" must be text, not {type_name}.')


def _collect_extra(blocks: tuple[YamlBlock, ...], known: tuple[str, ...]) -> str:
    extra, after_known = "", False
    for block in blocks:
        if block.key is None and after_known and extra:
            extra += _compact_comments(block.source)
        elif block.key not in known:
            extra += block.source
        after_known = block.key in known
    return extra


def _compact_comments(lines: str) -> str:
    """Remove blank lines and indentation from the comments that follow a known key.

    The known key is not kept in `extra`. Without it, indented comments would become part of the value above
    them, if that value is a YAML block scalar.
    """
    return "".join(line.lstrip(" ") for line in lines.splitlines(keepends=True) if line.strip())


def _render_file(file: _PersonaFile) -> str:
    raise_for_problems(find_extra_problems(file.extra, file.keys))
    values = {key: getattr(file, key) for key in file.keys}
    # Write an empty key if the body has an entry for it, which an import would otherwise read as the value.
    entries = read_bullet_values(getattr(file, file.body), file.keys).values
    head = "".join(
        f"{key}: {_format_scalar(value)}\n" for key, value in values.items() if value or key in entries
    )
    text = join_front_matter(head + file.extra, getattr(file, file.body))
    # Parse the rendered text, to raise an error if it could not be imported again (for example, if too long).
    _parse_file(type(file), text)
    return text


def _format_scalar(value: str) -> str:
    is_plain = (
        PLAIN_SCALAR_PATTERN.fullmatch(value)
        and value.isprintable()
        and value.lower() not in RESERVED_YAML_WORDS
    )
    if is_plain and not re.search(r": | #|[: ]$", value):
        return value
    # A JSON string is also a YAML string, if the characters that YAML forbids or folds are escaped.
    return ESCAPED_CHARACTERS.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(value, ensure_ascii=False)
    )


def _trim_extra_lines(extra: str) -> str:
    lines = re.sub(r"\A(?: *\n)+", "", normalize_newlines(extra))
    return lines.removesuffix("\n") + "\n" if lines.strip(" \n") else ""
