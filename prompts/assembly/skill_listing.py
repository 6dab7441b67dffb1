"""List skills as XML; the model loads their files with the read tool, so the listing requires that tool."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from prompts.assembly.inputs import PromptInputs, SkillInput
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


def is_model_invocable(skill: SkillInput) -> bool:
    return not skill.disable_model_invocation


def build_pi_skills(inputs: PromptInputs) -> TextChunks:
    """Build the listing, or a placeholder if the agent has no read tool, because a call may add that tool."""
    return build_skill_entries(inputs) if has_read_tool(inputs) else build_slot_placeholder("skills")


def build_skill_entries(inputs: PromptInputs) -> TextChunks:
    return join_chunks(
        [
            (format_skill_entry(skill.name, skill.description, skill.location), skill.origin)
            for skill in inputs.skills
            if not skill.disable_model_invocation
        ]
    )


# Cached because skills seldom change between builds, and escaping is slow.
@lru_cache(maxsize=4_096)
def format_skill_entry(name: str, description: str, location: str) -> str:
    """Format name, description and path; a skill without a file has no path."""
    location_line = f"    <location>{format_entry_field(location)}</location>\n" if location else ""
    return (
        "  <skill>\n"
        f"    <name>{format_entry_field(name)}</name>\n"
        f"    <description>{format_entry_field(description)}</description>\n"
        f"{location_line}"
        "  </skill>"
    )


def format_entry_field(text: str) -> str:
    """Escape a field so that it is one line without tags.

    Line ends are normalized here, because slot data is not normalized later.
    """
    return escape_markup(collapse_lines(normalize_line_ends(text)))


def frame_skill_listing(body: TextChunks) -> TextChunks:
    """Add the introduction and the tags; the fields of the listing are escaped, so none can close a tag."""
    return [LISTING_OPENING, *body, LISTING_CLOSING]


def get_skills_slot_data(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Return slot data with the listing only if the build lacks it; calls that add the read tool need it."""
    if not any(map(is_model_invocable, inputs.skills)):
        return None
    if has_read_tool(inputs):
        return {"is_built": True}
    return {
        "is_built": False,
        "block": "".join([text for text, _ in frame_skill_listing(build_skill_entries(inputs))]),
    }


@register_slot("pi.skills")
def render_pi_skills(slots: Slots, slot_data: Mapping[str, Any]) -> str | None:
    is_built: bool = slot_data["is_built"]
    is_included = is_built if slots.tools is None else READ_TOOL in slots.tools
    if not is_included:
        return ""
    return None if is_built else str(slot_data["block"])
