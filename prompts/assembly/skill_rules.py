"""Validate skills by the rules of the Agent Skills specification.

No layout lists a skill with an invalid name. The other rules are those of the opal layout.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from prompts.assembly.inputs import PromptInputs, SkillInput
from prompts.assembly.text import collapse_whitespace

MAX_NAME_LENGTH, MAX_DESCRIPTION_LENGTH = 64, 1_024
SEPARATOR_PATTERN = re.compile(r"[/\\]")
NAME_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
SKILL_FILE_NAME = "SKILL.md"


def list_valid_skills(skills: Iterable[SkillInput]) -> list[SkillInput]:
    """List the valid skills in order; of several skills with the same name, only the first."""
    kept: dict[str, SkillInput] = {}
    for skill in skills:
        name = skill.name
        if name not in kept and not find_skill_fault(name, skill.description, skill.location):
            kept[name] = skill
    return list(kept.values())


def describe_rejected_skills(skills: Iterable[SkillInput]) -> list[str]:
    """Return a message with the reason for each skill that is not offered."""
    accepted_names: set[str] = set()
    messages = []
    for skill in skills:
        reason = find_skill_fault(skill.name, skill.description, skill.location) or (
            "another of this name comes first" if skill.name in accepted_names else ""
        )
        if reason:
            messages.append(f"The skill “{collapse_whitespace(skill.name)}” is not offered: {reason}.")
        else:
            accepted_names.add(skill.name)
    return messages


def exclude_invalid_names(inputs: PromptInputs) -> tuple[PromptInputs, tuple[str, ...]]:
    """Remove the skills with invalid names, and return a message for each of them."""
    rejected = [skill for skill in inputs.skills if not is_valid_name(skill.name)]
    if not rejected:
        return inputs, ()
    kept = tuple([skill for skill in inputs.skills if is_valid_name(skill.name)])
    return replace(inputs, skills=kept), tuple(describe_rejected_skills(rejected))


@lru_cache(maxsize=4_096)
def is_valid_name(name: str) -> bool:
    """Accept letters and digits of any script, as the reference parser of Agent Skills does."""
    parts = name.split("-")
    return (
        len(name) <= MAX_NAME_LENGTH
        and name == name.lower()
        and all(part and all(map(str.isalnum, part)) for part in parts)
    )


# Cached because every build calls this function twice per skill, and skills seldom change.
@lru_cache(maxsize=4_096)
def find_skill_fault(name: str, description: str, location: str) -> str:
    """Describe the first rule that a skill violates; return an empty string if the skill is valid."""
    if len(name) > MAX_NAME_LENGTH:
        return f"its name is longer than {MAX_NAME_LENGTH} characters"
    if not NAME_PATTERN.fullmatch(name):
        return "its name may hold only lower-case letters, digits and single hyphens"
    if not description or description.isspace():
        return "it has no description"
    if len(description) > MAX_DESCRIPTION_LENGTH:
        return f"its description is longer than {MAX_DESCRIPTION_LENGTH:,} characters"
    if location and get_folder_name(location) != name:
        return f"its folder is called “{collapse_whitespace(get_folder_name(location))}”"
    return ""


def get_folder_name(location: str) -> str:
    """Return the name of a skill's folder; `location` is the path of the folder or of its SKILL.md."""
    return SEPARATOR_PATTERN.split(get_folder_path(location))[-1]


def get_folder_path(location: str) -> str:
    """Return the path of a skill's folder; `location` is the path of the folder or of its SKILL.md.

    On Windows the names are separated by backslashes.
    """
    folder = location.removesuffix(SKILL_FILE_NAME)
    return folder.rstrip("/\\") if folder.endswith(("/", "\\")) else location
