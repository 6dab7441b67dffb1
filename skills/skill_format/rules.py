"""What the Agent Skills rules ask of a skill's head; pure, so files and forms are held to the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, TypeAlias

from core.text.front_matter import MAX_PROBLEMS, Value

NAME_LIMIT = 64
DESCRIPTION_LIMIT = 1_024
COMPATIBILITY_LIMIT = 500
NAME_SHAPE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

NAME_MISSING = "A skill needs a name."
NAME_MISSHAPEN = "Use lower-case letters, digits and single hyphens, with no hyphen at either end."
DESCRIPTION_MISSING = "A skill needs a description: it is all a model sees until it loads the skill."
SWITCHES = {"": False, "false": False, "true": True}


class Flaw(StrEnum):
    """Why a file is not a sound skill; each harness says how much it minds."""

    UNREADABLE = "unreadable"
    FRONT_MATTER = "front-matter"
    FLOW_STYLE = "flow-style"
    UNKNOWN_FIELD = "unknown-field"
    NAME_MISSING = "name-missing"
    NAME_LENGTH = "name-length"
    NAME_SHAPE = "name-shape"
    NAME_SCRIPT = "name-script"
    NAME_FOLDER = "name-folder"
    DESCRIPTION_MISSING = "description-missing"
    DESCRIPTION_LENGTH = "description-length"
    COMPATIBILITY = "compatibility"
    LICENSE_SHAPE = "license-shape"
    TOOLS_SHAPE = "allowed-tools-shape"
    METADATA_SHAPE = "metadata-shape"
    METADATA_NESTED = "metadata-nested"
    SWITCH_SHAPE = "switch-shape"


@dataclass(frozen=True)
class Problem:
    """One reason why a skill is refused, and the field it stands in."""

    field: str  # Empty when the file as a whole is meant.
    message: str
    line: int = 0  # None of a file's lines: the value was typed into a form.
    flaw: Flaw | None = None


Found: TypeAlias = Iterator[tuple[Flaw, str]]


def skill_problems(*, name: str, description: str, metadata: Mapping[str, Any]) -> list[Problem]:
    """Every rule the head breaks; an empty list means it is sound."""
    found = [
        ("name", name_problem(name)),
        ("description", description_problem(description)),
        ("metadata", metadata_problem(metadata)),
    ]
    return [Problem(field, message) for field, message in found if message]


def name_problem(name: str) -> str:
    if not name:
        return NAME_MISSING
    if len(name) > NAME_LIMIT:
        return too_long("name", name, NAME_LIMIT)
    return "" if NAME_SHAPE.fullmatch(name) else NAME_MISSHAPEN


def description_problem(description: str) -> str:
    if not description.strip():
        return DESCRIPTION_MISSING
    if len(description) > DESCRIPTION_LIMIT:
        return too_long("description", description, DESCRIPTION_LIMIT)
    return ""


def metadata_problem(metadata: Any) -> str:
    if not isinstance(metadata, Mapping):
        return "Metadata must be keys with values."
    if any(not isinstance(part, str) for pair in metadata.items() for part in pair):
        return "Keys and values of metadata must be text."
    return ""


def head_flaws(values: Mapping[str, Value], folder: str) -> Iterator[tuple[str, Flaw, str]]:
    """Every rule a file's head breaks, with the field; an absent field counts as empty."""
    for field, check in CHECKS.items():
        yield from ((field, *found) for found in check(values.get(field, "")))
    name = values.get("name", "")
    if folder and isinstance(name, str) and name.strip() and settled_name(name) != settled_name(folder):
        yield "name", Flaw.NAME_FOLDER, f'The name must equal its folder\'s name, "{folder}".'


def settled_name(name: str) -> str:
    """The reference compares names so: a folder on a Mac may spell é as two characters."""
    return unicodedata.normalize("NFKC", name.strip())


def too_long(field: str, value: str, limit: int) -> str:
    return f"The {field} has {len(value)} characters; at most {limit} fit."


def not_text(field: str, value: Value) -> str:
    return f'"{field}" must be text, not {"a list" if isinstance(value, list) else "a group of keys"}.'


def name_flaws(value: Value) -> Found:
    if not isinstance(value, str) or not value.strip():
        yield Flaw.NAME_MISSING, NAME_MISSING if isinstance(value, str) else not_text("name", value)
        return
    name = settled_name(value)
    if len(name) > NAME_LIMIT:
        yield Flaw.NAME_LENGTH, too_long("name", name, NAME_LIMIT)
    if not _is_shaped(name):
        yield Flaw.NAME_SHAPE, NAME_MISSHAPEN
    elif not name.isascii():
        yield Flaw.NAME_SCRIPT, "The name has letters beyond a to z, which not every reader accepts."


def _is_shaped(name: str) -> bool:
    """The reference takes letters and digits of any script; a form asks for a to z."""
    parts = name.split("-")
    return name == name.lower() and all(part and all(map(str.isalnum, part)) for part in parts)


def description_flaws(value: Value) -> Found:
    if not isinstance(value, str):
        yield Flaw.DESCRIPTION_MISSING, not_text("description", value)
    elif not value.strip():
        yield Flaw.DESCRIPTION_MISSING, DESCRIPTION_MISSING
    elif len(value) > DESCRIPTION_LIMIT:
        yield Flaw.DESCRIPTION_LENGTH, too_long("description", value, DESCRIPTION_LIMIT)


def compatibility_flaws(value: Value) -> Found:
    if not isinstance(value, str):
        yield Flaw.COMPATIBILITY, not_text("compatibility", value)
    elif len(value) > COMPATIBILITY_LIMIT:
        yield Flaw.COMPATIBILITY, too_long("compatibility", value, COMPATIBILITY_LIMIT)


def license_flaws(value: Value) -> Found:
    if not isinstance(value, str):
        yield Flaw.LICENSE_SHAPE, f"{not_text('license', value)} It is kept as JSON."


def tools_flaws(value: Value) -> Found:
    if not isinstance(value, str):
        kept = "joined into one line" if is_list_of_text(value) else "kept as JSON"
        yield Flaw.TOOLS_SHAPE, f"{not_text('allowed-tools', value)} It is {kept}."


def metadata_flaws(value: Value) -> Found:
    if not isinstance(value, dict):
        if value:
            yield Flaw.METADATA_SHAPE, "Metadata must be keys with values; what stands here is left out."
        return
    nested = ((key, part) for key, part in value.items() if not isinstance(part, str))
    for key, part in islice(nested, MAX_PROBLEMS):
        yield Flaw.METADATA_NESTED, f"{not_text(key[:NAME_LIMIT], part)} It is kept as JSON."


def switch_flaws(value: Value) -> Found:
    if not isinstance(value, str) or value.lower() not in SWITCHES:
        yield Flaw.SWITCH_SHAPE, '"disable-model-invocation" must be true or false; it counts as false.'


def is_list_of_text(value: Value) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


CHECKS: Mapping[str, Callable[[Value], Found]] = {
    "name": name_flaws,
    "description": description_flaws,
    "license": license_flaws,
    "compatibility": compatibility_flaws,
    "metadata": metadata_flaws,
    "allowed-tools": tools_flaws,
    "disable-model-invocation": switch_flaws,
}
