"""The moltis layout: twelve parts under Markdown headings, three entry points, native or fallback tools."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly import tool_guidance
from prompts.assembly.budget import cut_entries
from prompts.assembly.file_sections import (
    build_project_files,
    build_workspace_files,
    describe_truncated_files,
)
from prompts.assembly.frames import TextFrame, build_heading_frame
from prompts.assembly.inputs import PromptInputs, UserProfileInput
from prompts.assembly.layout import Layout, LayoutPart, SectionBuilder, build_slot_placeholder
from prompts.assembly.report import OmissionReason
from prompts.assembly.runtime_lines import format_runtime_lines
from prompts.assembly.sections import NO_CHUNKS, format_identity_sentences
from prompts.assembly.segments import REFRESH, SESSION, USER, TextChunk, TextChunks
from prompts.assembly.skill_rules import get_folder_path
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.text import escape_attributes, escape_closing_tags
from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.texts.moltis import EXECUTION_ROUTING
from prompts.assembly.tool_lines import build_tool_part, list_offered_tools

PERSONA_INPUTS = (
    *(f"identity.{field}" for field in ("name", "emoji", "creature", "vibe")),
    "soul",
    *(f"user.{field}" for field in ("name", "timezone", "location")),
)
# Inputs that each entry point does not use; the simple entry point uses only tools and context files.
UNUSED_INPUTS_BY_ENTRY = {
    "full": (),
    "simple": (*PERSONA_INPUTS, "skills", "workspace_files"),
    "minimal": ("tools", "skills"),
}


def limit_to_entries(section: SectionBuilder, *entries: str) -> SectionBuilder:
    """Return a section builder that builds the section for these entry points and nothing for others."""
    return lambda inputs: section(inputs) if inputs.entry in entries else NO_CHUNKS


def build_moltis_identity(inputs: PromptInputs) -> TextChunks:
    sentences = format_identity_sentences(inputs.identity) if inputs.identity else ""
    return [TextChunk(sentences, inputs.identity.origin)] if inputs.identity and sentences else NO_CHUNKS


def build_moltis_soul(inputs: PromptInputs) -> TextChunks:
    """Return the soul, or the default soul if it is absent or blank; without an identity return nothing."""
    if inputs.identity is None:
        return NO_CHUNKS
    if inputs.soul is None or not inputs.soul.text.strip():
        return [TextChunk(DEFAULT_SOUL)]
    return [TextChunk(inputs.soul.text, inputs.soul.origin)]


def build_moltis_user(inputs: PromptInputs) -> TextChunks:
    if inputs.user is None or not inputs.user.name:
        return NO_CHUNKS
    return [TextChunk(f"The user's name is {inputs.user.name}.", inputs.user.origin)]


def build_moltis_runtime(_: PromptInputs) -> TextChunks:
    return build_slot_placeholder("runtime")


def get_runtime_slot_data(inputs: PromptInputs) -> Mapping[str, Any] | None:
    """Return the tool names, and the user's time zone and location as defaults for a call's host line.

    Return None, which omits the part, for the simple entry point.
    """
    if inputs.entry == "simple":
        return None
    slot_data = {"tools": [tool.name for tool in list_offered_tools(inputs)]}
    return slot_data | get_user_locale(inputs.user) if inputs.user else slot_data


def get_user_locale(profile: UserProfileInput) -> dict[str, Any]:
    return {"timezone": profile.timezone, "location": profile.location}


@register_slot("moltis.runtime")
def render_moltis_runtime(slots: Slots, slot_data: Mapping[str, Any]) -> str:
    """Render host and sandbox and, for agents with tools, how `exec` chooses between the two."""
    lines = format_runtime_lines(slots, slot_data.get("timezone", ""), slot_data.get("location", ""))
    if not lines:
        return ""
    has_tools = any(slots.tools is None or name in slots.tools for name in slot_data["tools"])
    routing = f"\n\n{EXECUTION_ROUTING}" if has_tools else ""
    return "## Runtime\n\n" + "\n".join(lines) + routing


def build_moltis_skills(inputs: PromptInputs) -> TextChunks:
    """List the skills that the model may invoke, in order of registration, each with its folder."""
    skills = [skill for skill in inputs.skills if not skill.disable_model_invocation]
    names = escape_attributes([skill.name for skill in skills])
    paths = escape_attributes([get_folder_path(skill.location) for skill in skills])
    fields = zip(names, paths, skills, strict=True)
    return [
        (format_skill_element(name, path, skill.description), skill.origin) for name, path, skill in fields
    ]


def format_skill_element(name: str, path: str, description: str) -> str:
    path_attribute = f' path="{path}"' if path else ""
    body = escape_closing_tags(description, "skill", "available_skills")
    return f'\n<skill name="{name}" source="skill"{path_attribute}>\n{body}\n</skill>'


def list_moltis_problems(inputs: PromptInputs) -> list[str]:
    """List truncated files, and a soul that is omitted because there is no identity."""
    if inputs.entry == "simple":
        return describe_truncated_files(inputs)
    problems = describe_truncated_files(inputs, inputs.workspace_files)
    if inputs.soul is not None and inputs.soul.text and inputs.identity is None:
        problems.append("The soul is left out: this layout gives one only beside an identity.")
    return problems


def list_moltis_displaced_inputs(inputs: PromptInputs) -> tuple[str, ...]:
    """List the inputs that this entry point does not use, and a soul without an identity."""
    unused: tuple[str, ...] = UNUSED_INPUTS_BY_ENTRY[inputs.entry]
    return unused if inputs.identity else (*unused, "soul")


MOLTIS_LAYOUT = Layout(
    name="moltis",
    summary="Twelve components; full, simple and minimal entry points; native or fallback tools.",
    slots=("host", "sandbox", "session", "tools", "entry"),
    problems=list_moltis_problems,
    displaced=list_moltis_displaced_inputs,
    parts=(
        build_tool_part("moltis.introduction", tool_guidance.build_tools_introduction),
        LayoutPart(
            "identity",
            limit_to_entries(build_moltis_identity, "full", "minimal"),
            uses=("identity.name", "identity.emoji", "identity.creature", "identity.vibe"),
            omission_reason=OmissionReason.NO_IDENTITY_SENTENCE,
        ),
        LayoutPart(
            "soul",
            limit_to_entries(build_moltis_soul, "full", "minimal"),
            build_heading_frame("## Soul"),
            uses=("soul",),
            omission_reason=OmissionReason.NO_IDENTITY_OR_SIMPLE,
        ),
        LayoutPart(
            "user",
            limit_to_entries(build_moltis_user, "full", "minimal"),
            uses=("user.name",),
            volatility=USER,
            omission_reason=OmissionReason.NO_USER_NAME,
        ),
        LayoutPart(
            "project_context",
            build_project_files,
            build_heading_frame("## Project Context"),
            uses=("context_files",),
            volatility=REFRESH,
            omission_reason=OmissionReason.NO_CONTEXT_FILES,
            is_cuttable=True,
        ),
        LayoutPart(
            "runtime",
            build_moltis_runtime,
            uses=("user.timezone", "user.location"),
            volatility=SESSION,
            omission_reason=OmissionReason.SIMPLE_ENTRY,
            slot="moltis.runtime",
            slot_data=get_runtime_slot_data,
        ),
        LayoutPart(
            "skills",
            limit_to_entries(build_moltis_skills, "full"),
            # The frame has no `tag` to escape: each skill element is escaped already, and a second check
            # would double the cost.
            TextFrame("## Available Skills\n<available_skills>", "\n</available_skills>"),
            uses=("skills",),
            volatility=REFRESH,
            omission_reason=OmissionReason.NO_SKILLS_OR_NOT_FULL,
            shorten=cut_entries,
        ),
        LayoutPart(
            "workspace_files",
            limit_to_entries(build_workspace_files, "full", "minimal"),
            build_heading_frame("## Workspace Files"),
            uses=("workspace_files",),
            volatility=REFRESH,
            omission_reason=OmissionReason.NO_WORKSPACE_FILES,
            is_cuttable=True,
        ),
        build_tool_part(
            "moltis.memory_hint",
            tool_guidance.build_memory_hint,
            frame=build_heading_frame("## Long-Term Memory"),
            omission_reason=OmissionReason.NO_MEMORY_TOOLS,
        ),
        build_tool_part(
            "moltis.tool_schemas",
            tool_guidance.build_tool_schemas,
            frame=build_heading_frame("## Available Tools"),
            keeps=("description", "snippet", "parameters"),
            omission_reason=OmissionReason.NO_TOOLS,
        ),
        build_tool_part(
            "moltis.tool_calling",
            tool_guidance.build_calling_guide,
            frame=build_heading_frame("## How to call tools"),
            omission_reason=OmissionReason.NO_TOOLS_OR_DEFINED,
        ),
        build_tool_part(
            "moltis.guidelines",
            tool_guidance.build_moltis_guidelines,
            frame=build_heading_frame("## Guidelines"),
            keeps=("guidelines",),
        ),
    ),
)
