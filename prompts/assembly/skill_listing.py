"""Skills as an XML listing whose files the model loads with the read tool, when it has one."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from prompts.assembly.inputs import PromptInputs, Skill
from prompts.assembly.layout import awaited
from prompts.assembly.sections import listed
from prompts.assembly.segments import Piece, Pieces
from prompts.assembly.slots import Slots, slot
from prompts.assembly.text import escaped, normalised, on_one_line
from prompts.assembly.texts.pi import SKILLS

READ = "read"
OPENING, CLOSING = Piece(f"{SKILLS}\n\n<available_skills>\n"), Piece("\n</available_skills>")


def can_read(inputs: PromptInputs) -> bool:
    return any(tool.name == READ for tool in inputs.active_tools())


def is_invocable(skill: Skill) -> bool:
    return not skill.disable_model_invocation


def listed_skills(inputs: PromptInputs) -> Pieces:
    """An entry each; kept open while the agent cannot read, for a call may bring the tool."""
    return entries(inputs) if can_read(inputs) else awaited("skills")


def entries(inputs: PromptInputs) -> Pieces:
    return listed(
        [
            (entry(skill.name, skill.description, skill.location), skill.origin)
            for skill in inputs.skills
            if not skill.disable_model_invocation
        ]
    )


# Skills seldom change between two builds, and escaping is what takes the time.
@lru_cache(maxsize=4_096)
def entry(name: str, description: str, location: str) -> str:
    """Name, description and path; a skill that lies in no file has no path to give."""
    place = f"    <location>{field(location)}</location>\n" if location else ""
    return (
        "  <skill>\n"
        f"    <name>{field(name)}</name>\n"
        f"    <description>{field(description)}</description>\n"
        f"{place}"
        "  </skill>"
    )


def field(text: str) -> str:
    """One line in which no tag survives; a block kept for later is not seen when line ends are put right."""
    return escaped(on_one_line(normalised(text)))


def listing(body: Pieces) -> Pieces:
    """The listing under its introduction; every field is escaped, so none can close it."""
    return [OPENING, *body, CLOSING]


def given_listing(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Only a build that cannot read keeps the block apart: a call that can will ask for it."""
    if not any(map(is_invocable, inputs.skills)):
        return None
    if can_read(inputs):
        return {"is_built": True}
    return {"is_built": False, "block": "".join([text for text, _ in listing(entries(inputs))])}


@slot("pi.skills")
def listing_of_call(slots: Slots, given: Mapping[str, Any]) -> str | None:
    is_built: bool = given["is_built"]
    is_wanted = is_built if slots.tools is None else READ in slots.tools
    if not is_wanted:
        return ""
    return None if is_built else str(given["block"])
