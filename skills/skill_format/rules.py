"""Validate the front matter of skills against the Agent Skills specification, for files and forms."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, TypeAlias

from core.text.front_matter import MAX_PROBLEMS, YamlValue

MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 1_024
MAX_COMPATIBILITY_LENGTH = 500
NAME_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

NAME_MISSING_MESSAGE = "A skill needs a name."
NAME_FORMAT_MESSAGE = "Use lowercase letters, digits and single hyphens, with no hyphen at either end."
DESCRIPTION_MISSING_MESSAGE = "A skill needs a description: it is all a model sees until it loads the skill."
BOOLEAN_VALUES = {"": False, "false": False, "true": True}


class SkillFlaw(StrEnum):
    """Codes for the problems of a skill. The tolerance of each harness decides which ones matter."""

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
    OUTSIDE_REFERENCE = "outside-reference"


@dataclass(frozen=True)
class SkillProblem:
    """One problem of a skill, with its field and line."""

    field: str  # Empty for the file as a whole.
    message: str
    line: int = 0  # 0 if the value comes from a form.
    flaw: SkillFlaw | None = None


FlawMessages: TypeAlias = Iterator[tuple[SkillFlaw, str]]


def list_skill_problems(*, name: str, description: str, metadata: Mapping[str, Any]) -> list[SkillProblem]:
    """List one problem for each invalid field of a skill record; an empty list means that it is valid."""
    messages = [
        ("name", find_skill_name_problem(name)),
        ("description", find_description_problem(description)),
        ("metadata", find_metadata_problem(metadata)),
    ]
    return [SkillProblem(field, message) for field, message in messages if message]


def find_skill_name_problem(name: str) -> str:
    if not name:
        return NAME_MISSING_MESSAGE
    if len(name) > MAX_NAME_LENGTH:
        return format_length_message("name", name, MAX_NAME_LENGTH)
    return "" if NAME_PATTERN.fullmatch(name) else NAME_FORMAT_MESSAGE


def find_description_problem(description: str) -> str:
    if not description.strip():
        return DESCRIPTION_MISSING_MESSAGE
    if len(description) > MAX_DESCRIPTION_LENGTH:
        return format_length_message("description", description, MAX_DESCRIPTION_LENGTH)
    return ""


def find_metadata_problem(metadata: Any) -> str:
    if not isinstance(metadata, Mapping):
        return "Metadata must be keys with values."
    if any(not isinstance(part, str) for pair in metadata.items() for part in pair):
        return "Keys and values of metadata must be text."
    return ""


def find_front_matter_flaws(
    values: Mapping[str, YamlValue], folder: str
) -> Iterator[tuple[str, SkillFlaw, str]]:
    """Yield field, flaw and message for each violated rule. A missing field counts as empty."""
    for field, check in FIELD_CHECKS.items():
        yield from ((field, *flaw) for flaw in check(values.get(field, "")))
    name = values.get("name", "")
    if (
        folder
        and isinstance(name, str)
        and name.strip()
        and normalize_skill_name(name) != normalize_skill_name(folder)
    ):
        yield "name", SkillFlaw.NAME_FOLDER, f'The name must equal its folder\'s name, "{folder}".'


def normalize_skill_name(name: str) -> str:
    """Normalize a name to NFKC, as the reference parser does.

    Without this, a folder name from macOS could differ from an equal name, because macOS may store é as two
    characters.
    """
    return unicodedata.normalize("NFKC", name.strip())


def format_length_message(field: str, value: str, limit: int) -> str:
    return f"The {field} has {len(value)} characters; at most {limit} fit."


def format_type_message(field: str, value: YamlValue) -> str:
    return f'"{field}" must be text, not {"a list" if isinstance(value, list) else "a group of keys"}.'


def find_name_flaws(value: YamlValue) -> FlawMessages:
    if not isinstance(value, str) or not value.strip():
        yield (
            SkillFlaw.NAME_MISSING,
            NAME_MISSING_MESSAGE if isinstance(value, str) else format_type_message("name", value),
        )
        return
    name = normalize_skill_name(value)
    if len(name) > MAX_NAME_LENGTH:
        yield SkillFlaw.NAME_LENGTH, format_length_message("name", name, MAX_NAME_LENGTH)
    if not is_valid_skill_name(name):
        yield SkillFlaw.NAME_SHAPE, NAME_FORMAT_MESSAGE
    elif not name.isascii():
        yield (
            SkillFlaw.NAME_SCRIPT,
            ("The name contains letters other than a to z, which not every harness accepts."),
        )


def is_valid_skill_name(name: str) -> bool:
    """Accept letters and digits of any script, like the reference parser. Forms only accept a to z."""
    parts = name.split("-")
    return name == name.lower() and all(part and all(map(str.isalnum, part)) for part in parts)


def find_description_flaws(value: YamlValue) -> FlawMessages:
    if not isinstance(value, str):
        yield SkillFlaw.DESCRIPTION_MISSING, format_type_message("description", value)
    elif not value.strip():
        yield SkillFlaw.DESCRIPTION_MISSING, DESCRIPTION_MISSING_MESSAGE
    elif len(value) > MAX_DESCRIPTION_LENGTH:
        yield (
            SkillFlaw.DESCRIPTION_LENGTH,
            format_length_message("description", value, MAX_DESCRIPTION_LENGTH),
        )


def find_compatibility_flaws(value: YamlValue) -> FlawMessages:
    if not isinstance(value, str):
        yield SkillFlaw.COMPATIBILITY, format_type_message("compatibility", value)
    elif len(value) > MAX_COMPATIBILITY_LENGTH:
        yield SkillFlaw.COMPATIBILITY, format_length_message("compatibility", value, MAX_COMPATIBILITY_LENGTH)


def find_license_flaws(value: YamlValue) -> FlawMessages:
    if not isinstance(value, str):
        yield SkillFlaw.LICENSE_SHAPE, f"{format_type_message('license', value)} It is kept as JSON."


def find_tools_flaws(value: YamlValue) -> FlawMessages:
    if not isinstance(value, str):
        conversion = "joined into one line" if is_text_list(value) else "kept as JSON"
        yield SkillFlaw.TOOLS_SHAPE, f"{format_type_message('allowed-tools', value)} It is {conversion}."


def find_metadata_flaws(value: YamlValue) -> FlawMessages:
    if not isinstance(value, dict):
        if value:
            yield SkillFlaw.METADATA_SHAPE, "Metadata must be keys with values. This value is ignored."
        return
    nested = ((key, part) for key, part in value.items() if not isinstance(part, str))
    for key, part in islice(nested, MAX_PROBLEMS):
        yield (
            SkillFlaw.METADATA_NESTED,
            f"{format_type_message(key[:MAX_NAME_LENGTH], part)} It is kept as JSON.",
        )


def find_switch_flaws(value: YamlValue) -> FlawMessages:
    if not isinstance(value, str) or value.lower() not in BOOLEAN_VALUES:
        yield (
            SkillFlaw.SWITCH_SHAPE,
            '"disable-model-invocation" must be true or false. It is treated as false.',
        )


def is_text_list(value: YamlValue) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


FIELD_CHECKS: Mapping[str, Callable[[YamlValue], FlawMessages]] = {
    "name": find_name_flaws,
    "description": find_description_flaws,
    "license": find_license_flaws,
    "compatibility": find_compatibility_flaws,
    "metadata": find_metadata_flaws,
    "allowed-tools": find_tools_flaws,
    "disable-model-invocation": find_switch_flaws,
}
