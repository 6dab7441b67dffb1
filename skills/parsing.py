"""What the Agent Skills rules ask of a skill's head; pure, so files and forms are held to the same."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME_LIMIT = 64
DESCRIPTION_LIMIT = 1_024
NAME_SHAPE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True)
class Problem:
    """One reason why a skill is refused, and the field it stands in."""

    field: str
    message: str


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
        return "A skill needs a name."
    if len(name) > NAME_LIMIT:
        return f"The name has {len(name)} characters; at most {NAME_LIMIT} fit."
    if not NAME_SHAPE.fullmatch(name):
        return "Use lower-case letters, digits and single hyphens, with no hyphen at either end."
    return ""


def description_problem(description: str) -> str:
    if not description.strip():
        return "A skill needs a description: it is all a model sees until it loads the skill."
    if len(description) > DESCRIPTION_LIMIT:
        return f"The description has {len(description)} characters; at most {DESCRIPTION_LIMIT} fit."
    return ""


def metadata_problem(metadata: Any) -> str:
    if not isinstance(metadata, Mapping):
        return "Metadata must be keys with values."
    if any(not isinstance(part, str) for pair in metadata.items() for part in pair):
        return "Keys and values of metadata must be text."
    return ""
