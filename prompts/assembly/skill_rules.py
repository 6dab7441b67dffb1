"""The Agent Skills rules: which skills may be offered, and why the others are not."""

import re
from collections.abc import Iterable
from functools import lru_cache

from prompts.assembly.inputs import Skill
from prompts.assembly.text import single_line

NAME_LIMIT, DESCRIPTION_LIMIT = 64, 1_024
NAME_SHAPE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
FILE = "/SKILL.md"


def offered(skills: Iterable[Skill]) -> list[Skill]:
    """The sound ones in their order; of those with the same name, the first."""
    kept: dict[str, Skill] = {}
    for skill in skills:
        name = skill.name
        if name not in kept and not fault(name, skill.description, skill.location):
            kept[name] = skill
    return list(kept.values())


def refusals(skills: Iterable[Skill]) -> list[str]:
    """A sentence for each skill that is not offered, with the reason."""
    seen: set[str] = set()
    found = []
    for skill in skills:
        reason = fault(skill.name, skill.description, skill.location) or (
            "another of this name comes first" if skill.name in seen else ""
        )
        if reason:
            found.append(f"The skill “{single_line(skill.name)}” is not offered: {reason}.")
        else:
            seen.add(skill.name)
    return found


# Asked twice at every build, about skills that seldom change.
@lru_cache(maxsize=4_096)
def fault(name: str, description: str, location: str) -> str:
    """The first rule a skill breaks; empty when it is sound."""
    if len(name) > NAME_LIMIT:
        return f"its name is longer than {NAME_LIMIT} characters"
    if not NAME_SHAPE.fullmatch(name):
        return "its name may hold only lower-case letters, digits and single hyphens"
    if not description or description.isspace():
        return "it has no description"
    if len(description) > DESCRIPTION_LIMIT:
        return f"its description is longer than {DESCRIPTION_LIMIT:,} characters"
    if location and not location.endswith(f"/{name}{FILE}") and folder(location) != name:
        return f"its folder is called “{single_line(folder(location))}”"
    return ""


def folder(location: str) -> str:
    """The name of the folder a skill lies in; a location may name its file or the folder itself."""
    return location.removesuffix(FILE).rstrip("/").rpartition("/")[2]
