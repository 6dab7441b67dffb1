"""Parse and render IDENTITY.md, USER.md and SOUL.md; unknown front matter keys are preserved.

Parsing normalizes: newlines become LF, a byte order mark is removed, and one blank line after the front
matter and one newline at the end belong to the file. Known keys are written first, in a fixed order, without
the comments above or after them. All other lines are kept in `extra`, byte for byte.
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

# Known keys, in the order in which they are written.
IDENTITY_KEYS = ("name", "emoji", "creature", "vibe")
USER_KEYS = ("name", "timezone", "location")
ALL_KNOWN_KEYS = frozenset({*IDENTITY_KEYS, *USER_KEYS})

# Starts with a letter or a non-ASCII character: no number, date or YAML indicator does.
PLAIN_SCALAR_PATTERN = re.compile(r"[A-Za-z\u00a1-\U0010ffff].*")
# Some YAML parser reads each of these as a boolean or null if it is not quoted.
RESERVED_YAML_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
ESCAPED_CHARACTERS = re.compile(f"[{FORBIDDEN_RANGES}{FORBIDDEN_HEAD_RANGES}]")


class _PersonaFile:
    """Base of parsed files: front matter keys, a body and the unknown lines."""

    keys: ClassVar[tuple[str, ...]]
    body: ClassVar[str]
    extra: str

    def __post_init__(self) -> None:
        """Normalize the values so that rendering and parsing returns them unchanged."""
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
    """Parse SOUL.md: the complete text including front matter, without byte order mark, with LF newlines."""
    soul = normalize_newlines(text.lstrip(BOM))
    raise_for_problems(find_character_problems(soul, "text", 1))
    return soul


def render_soul(text: str) -> str:
    return parse_soul(text)


def find_extra_problems(raw: str, known: Collection[str] = ALL_KNOWN_KEYS) -> tuple[TextProblem, ...]:
    """List the reasons why extra front matter lines cannot be combined with the known keys."""
    raw = normalize_newlines(raw)
    try:
        blocks = parse_front_matter(raw)
    except FrontMatterError as error:
        return error.problems
    if "".join(block.source for block in blocks) != raw:
        return (TextProblem("", 1, "Leave this empty instead of writing an empty pair of braces."),)
    message = '"{}" has a field of its own; remove it here.'
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
    return kind(**values, **{kind.body: body, "extra": _collect_extra(blocks, kind.keys)})


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
    """Remove blank lines and indentation from comments.

    The known key above them is moved away, so they would become part of a preceding block scalar.
    """
    return "".join(line.lstrip(" ") for line in lines.splitlines(keepends=True) if line.strip())


def _render_file(file: _PersonaFile) -> str:
    raise_for_problems(find_extra_problems(file.extra, file.keys))
    values = ((key, getattr(file, key)) for key in file.keys)
    head = "".join(f"{key}: {_format_scalar(value)}\n" for key, value in values if value)
    text = join_front_matter(head + file.extra, getattr(file, file.body))
    # Parse the result: text that could not be read again (too long, a control character) is an error.
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
    # JSON strings are YAML strings, except for unescaped characters that YAML forbids or folds.
    return ESCAPED_CHARACTERS.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(value, ensure_ascii=False)
    )


def _trim_extra_lines(extra: str) -> str:
    lines = re.sub(r"\A(?: *\n)+", "", normalize_newlines(extra))
    return lines.removesuffix("\n") + "\n" if lines.strip(" \n") else ""
