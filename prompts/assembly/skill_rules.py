"""The Agent Skills rules: which skills may be offered, and why the others are not."""

import re
from collections.abc import Iterable
from functools import lru_cache

from prompts.assembly.inputs import Skill
from prompts.assembly.text import collapse_whitespace

MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH = 64, 1_024
NAME_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
SKILL_FILE_SUFFIX = "/SKILL.md"


def list_valid_skills(skills: Iterable[Skill]) -> list[Skill]:
    """The sound ones in their order; of those with the same name, the first."""
    kept: dict[str, Skill] = {}
    for skill in skills:
        name = skill.name
        if name not in kept and not find_skill_fault(name, skill.description, skill.location):
            kept[name] = skill
    return list(kept.values())


def describe_rejected_skills(skills: Iterable[Skill]) -> list[str]:
    """A sentence for each skill that is not offered, with the reason."""
    seen: set[str] = set()
    found = []
    for skill in skills:
        reason = find_skill_fault(skill.name, skill.description, skill.location) or (
            "another of this name comes first" if skill.name in seen else ""
        )
        if reason:
            found.append(f"The skill “{collapse_whitespace(skill.name)}” is not offered: {reason}.")
        else:
            seen.add(skill.name)
    return found


# Asked twice at every build, about skills that seldom change.
@lru_cache(maxsize=4_096)
def find_skill_fault(name: str, description: str, location: str) -> str:
    """The first rule a skill breaks; empty when it is sound."""
    if len(name) > MAX_NAME_LENGTH:
        return f"its name is longer than {MAX_NAME_LENGTH} characters"
    if not NAME_PATTERN.fullmatch(name):
        return "its name may hold only lower-case letters, digits and single hyphens"
    if not description or description.isspace():
        return "it has no description"
    if len(description) > MAX_DESCRIPTION_LENGTH:
        return f"its description is longer than {MAX_DESCRIPTION_LENGTH:,} characters"
    if (
        location
        and not location.endswith(f"/{name}{SKILL_FILE_SUFFIX}")
        and get_folder_name(location) != name
    ):
        return f"its folder is called “{collapse_whitespace(get_folder_name(location))}”"
    return ""


def get_folder_name(location: str) -> str:
    """The name of the folder a skill lies in; a location may name its file or the folder itself."""
    return location.removesuffix(SKILL_FILE_SUFFIX).rstrip("/").rpartition("/")[2]
