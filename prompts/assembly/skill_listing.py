"""Skills as an XML listing whose files the model loads with the read tool, when it has one."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from prompts.assembly.inputs import PromptInputs, Skill
from prompts.assembly.layout import build_slot_placeholder
from prompts.assembly.sections import join_chunks
from prompts.assembly.segments import TextChunk, TextChunks
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.text import collapse_lines, escape_markup, normalize_line_ends
from prompts.assembly.texts.pi import SKILLS_INTRODUCTION

READ_TOOL = "read"
LISTING_OPENING, LISTING_CLOSING = (
    TextChunk(f"{SKILLS_INTRODUCTION}\n\n<available_skills>\n"),
    TextChunk("\n</available_skills>"),
)


def has_read_tool(inputs: PromptInputs) -> bool:
    return any(tool.name == READ_TOOL for tool in inputs.active_tools())


def is_model_invocable(skill: Skill) -> bool:
    return not skill.disable_model_invocation


def build_pi_skills(inputs: PromptInputs) -> TextChunks:
    """An entry each; kept open while the agent cannot read, for a call may bring the tool."""
    return build_skill_entries(inputs) if has_read_tool(inputs) else build_slot_placeholder("skills")


def build_skill_entries(inputs: PromptInputs) -> TextChunks:
    return join_chunks(
        [
            (format_skill_entry(skill.name, skill.description, skill.location), skill.origin)
            for skill in inputs.skills
            if not skill.disable_model_invocation
        ]
    )


# Skills seldom change between two builds, and escaping is what takes the time.
@lru_cache(maxsize=4_096)
def format_skill_entry(name: str, description: str, location: str) -> str:
    """Name, description and path; a skill that lies in no file has no path to give."""
    place = f"    <location>{format_entry_field(location)}</location>\n" if location else ""
    return (
        "  <skill>\n"
        f"    <name>{format_entry_field(name)}</name>\n"
        f"    <description>{format_entry_field(description)}</description>\n"
        f"{place}"
        "  </skill>"
    )


def format_entry_field(text: str) -> str:
    """One line in which no tag survives; a block kept for later is not seen when line ends are put right."""
    return escape_markup(collapse_lines(normalize_line_ends(text)))


def frame_skill_listing(body: TextChunks) -> TextChunks:
    """The listing under its introduction; every field is escaped, so none can close it."""
    return [LISTING_OPENING, *body, LISTING_CLOSING]


def get_skills_slot_data(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Only a build that cannot read keeps the block apart: a call that can will ask for it."""
    if not any(map(is_model_invocable, inputs.skills)):
        return None
    if has_read_tool(inputs):
        return {"is_built": True}
    return {
        "is_built": False,
        "block": "".join([text for text, _ in frame_skill_listing(build_skill_entries(inputs))]),
    }


@register_slot("pi.skills")
def render_pi_skills(slots: Slots, given: Mapping[str, Any]) -> str | None:
    is_built: bool = given["is_built"]
    is_wanted = is_built if slots.tools is None else READ_TOOL in slots.tools
    if not is_wanted:
        return ""
    return None if is_built else str(given["block"])
