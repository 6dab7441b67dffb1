"""The pi layout: a base that SYSTEM.md replaces, then appended text, context, skills, date and directory."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.dates import format_12_hour_time, format_date, get_zone_name
from prompts.assembly.frames import build_heading_frame
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import (
    Layout,
    LayoutPart,
    SectionBuilder,
    build_call_part,
    build_slot_placeholder,
    frame_unless_placeholder,
    get_timezone_slot_data,
)
from prompts.assembly.report import OmissionReason
from prompts.assembly.sections import NO_CHUNKS
from prompts.assembly.segments import REFRESH, TURN, Origin, TextChunk, TextChunks
from prompts.assembly.skill_listing import (
    build_pi_skills,
    frame_skill_listing,
    get_skills_slot_data,
    has_read_tool,
    is_model_invocable,
)
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.text import collapse_lines, join_lines, normalize_line_ends
from prompts.assembly.texts import pi as texts
from prompts.assembly.tool_lines import (
    build_guideline_chunks,
    build_tool_chunks,
    format_guidelines,
    format_tool_list,
    get_guidelines_slot_data,
    get_own_snippets,
)
from prompts.assembly.tool_rules import PI_GENERAL_RULES, PI_RULES, ToolGuidelines

PI_GUIDELINES = ToolGuidelines(PI_RULES, PI_GENERAL_RULES)
IDENTITY_INPUTS = ("identity.name", "identity.emoji", "identity.creature", "identity.vibe", "identity.text")
TOOLS_HEADING, GUIDELINES_HEADING, NO_TOOLS_TEXT = "Available tools:", "Guidelines:", "(none)"


def is_base_replaced(inputs: PromptInputs) -> bool:
    """Tell whether a SYSTEM.md replaces the base.

    Discovery has already chosen between the SYSTEM.md of the project and the global one.
    """
    return inputs.base is not None and bool(inputs.base.text)


def skip_if_base_replaced(section: SectionBuilder) -> SectionBuilder:
    """Return a section builder that builds nothing if SYSTEM.md replaces the base."""
    return lambda inputs: NO_CHUNKS if is_base_replaced(inputs) else section(inputs)


def build_pi_base(inputs: PromptInputs) -> TextChunks:
    """Return SYSTEM.md, or else the agent's identity, or else the default sentence."""
    if inputs.base is not None and inputs.base.text:
        return [TextChunk(inputs.base.text, inputs.base.origin)]
    return sections.build_identity_section(inputs) or [TextChunk(texts.DEFAULT_IDENTITY)]


def build_pi_tools(inputs: PromptInputs) -> TextChunks:
    return build_tool_chunks(texts.TOOL_SNIPPETS, inputs) or [TextChunk(NO_TOOLS_TEXT)]


def get_snippets_slot_data(inputs: PromptInputs) -> Mapping[str, Any]:
    """Return the snippets as slot data, so that calls with other tools can be rendered without records."""
    return {"snippets": get_own_snippets(texts.TOOL_SNIPPETS, inputs)}


@register_slot("pi.tools")
def render_pi_tools(slots: Slots, slot_data: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None
    tool_list = format_tool_list(texts.TOOL_SNIPPETS, slots.tools, slot_data["snippets"])
    return f"{TOOLS_HEADING}\n{tool_list or NO_TOOLS_TEXT}"


def build_pi_custom_tools(_: PromptInputs) -> TextChunks:
    return [TextChunk(texts.CUSTOM_TOOLS_NOTICE)]


def build_pi_guidelines(inputs: PromptInputs) -> TextChunks:
    return build_guideline_chunks(PI_GUIDELINES, inputs)


@register_slot("pi.guidelines")
def render_pi_guidelines(slots: Slots, slot_data: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None
    return f"{GUIDELINES_HEADING}\n{format_guidelines(PI_GUIDELINES, slots.tools, slot_data['own'])}"


def build_documentation_section(inputs: PromptInputs) -> TextChunks:
    """List the paths of the harness documentation; empty paths are omitted."""
    if inputs.documentation is None:
        return NO_CHUNKS
    paths = (
        ("Main documentation", inputs.documentation.main),
        ("Additional docs", inputs.documentation.additional),
        ("Examples", inputs.documentation.examples),
    )
    lines = join_lines(f"- {title}: {collapse_lines(path)}" for title, path in paths if path)
    return [TextChunk(lines, Origin("agent", inputs.agent))] if lines else NO_CHUNKS


def build_pi_append(inputs: PromptInputs) -> TextChunks:
    """Include APPEND_SYSTEM.md, then the agent's instructions: both are system-level directives."""
    texts = [text for text in (inputs.append, inputs.instructions) if text is not None and text.text]
    return sections.join_chunks([TextChunk(text.text, text.origin) for text in texts], "\n\n")


def build_pi_project_context(inputs: PromptInputs) -> TextChunks:
    """Include every context file under its path, outermost first."""
    limits = inputs.limits
    return sections.join_chunks(
        [
            (f"## {collapse_lines(file.path)}\n\n{text}", sections.get_file_origin(file))
            for file, text in sections.fit_files(inputs.context_files, limits.per_file, limits.all_files)
            if text and not text.isspace()
        ],
        "\n\n",
    )


def build_pi_date_and_directory(inputs: PromptInputs) -> TextChunks:
    """Build a placeholder for the time, which each call supplies, followed by the working directory."""
    directory = format_directory_line(inputs.working_directory)
    return (
        [*build_slot_placeholder("time"), TextChunk(f"\n{directory}")]
        if directory
        else build_slot_placeholder("time")
    )


def format_directory_line(directory: str) -> str:
    return f"Current working directory: {collapse_lines(directory)}" if directory else ""


def get_directory_slot_data(inputs: PromptInputs) -> Mapping[str, Any]:
    return {"directory": format_directory_line(inputs.working_directory), **get_timezone_slot_data(inputs)}


@register_slot("pi.date")
def render_pi_date(slots: Slots, slot_data: Mapping[str, Any]) -> str:
    now = slots.now
    if now is None:
        return str(slot_data["directory"])
    time = f"{format_date(now)} at {format_12_hour_time(now)} {get_zone_name(now, slots.zone)}".rstrip()
    return join_lines((f"Current date and time: {time}", slot_data["directory"]))


@register_slot("pi.replace")
def render_pi_replacement(slots: Slots, _: Mapping[str, Any]) -> str:
    return normalize_line_ends(slots.replace)


@register_slot("pi.append")
def render_pi_append(slots: Slots, _: Mapping[str, Any]) -> str:
    return normalize_line_ends(slots.append)


def list_pi_displaced_inputs(inputs: PromptInputs) -> Sequence[str]:
    """List the inputs that SYSTEM.md replaces, and the skills if the agent has no tool to read them."""
    replaced = (*IDENTITY_INPUTS, "tools", "documentation") if is_base_replaced(inputs) else ()
    is_unread = any(map(is_model_invocable, inputs.skills)) and not has_read_tool(inputs)
    return (*replaced, "skills") if is_unread else replaced


PI_LAYOUT = Layout(
    name="pi",
    summary="A base that SYSTEM.md replaces whole; then appended text, context, skills, date and directory.",
    slots=("now", "timezone", "zone", "tools", "append", "replace"),
    displaced=list_pi_displaced_inputs,
    parts=(
        LayoutPart("base", build_pi_base, uses=("base", *IDENTITY_INPUTS)),
        LayoutPart(
            "tools",
            skip_if_base_replaced(build_pi_tools),
            build_heading_frame(TOOLS_HEADING, "\n"),
            uses=("tools",),
            slot="pi.tools",
            slot_data=get_snippets_slot_data,
            omission_reason=OmissionReason.BASE_REPLACED,
        ),
        LayoutPart(
            "custom_tools",
            skip_if_base_replaced(build_pi_custom_tools),
            omission_reason=OmissionReason.BASE_REPLACED,
        ),
        LayoutPart(
            "guidelines",
            skip_if_base_replaced(build_pi_guidelines),
            build_heading_frame(GUIDELINES_HEADING, "\n"),
            uses=("tools",),
            slot="pi.guidelines",
            slot_data=get_guidelines_slot_data,
            omission_reason=OmissionReason.BASE_REPLACED,
        ),
        LayoutPart(
            "documentation",
            skip_if_base_replaced(build_documentation_section),
            build_heading_frame(texts.DOCUMENTATION_HEADING, "\n"),
            uses=("documentation",),
            omission_reason=OmissionReason.NO_DOCUMENTATION,
        ),
        LayoutPart("append", build_pi_append, uses=("append", "instructions")),
        LayoutPart(
            "project_context",
            build_pi_project_context,
            build_heading_frame(texts.CONTEXT_HEADING),
            uses=("context_files",),
            volatility=REFRESH,
            is_cuttable=True,
        ),
        LayoutPart(
            "skills",
            build_pi_skills,
            frame_unless_placeholder(frame_skill_listing),
            uses=("skills",),
            volatility=REFRESH,
            slot="pi.skills",
            slot_data=get_skills_slot_data,
            is_cuttable=True,
            shorten=cut_entries,
            omission_reason=OmissionReason.NO_MODEL_SKILLS,
        ),
        LayoutPart(
            "date_and_directory",
            build_pi_date_and_directory,
            uses=("working_directory", "user.timezone"),
            volatility=TURN,
            slot="pi.date",
            slot_data=get_directory_slot_data,
        ),
        # The text of the replacement replaces everything before it, so only the call's appended text follows.
        build_call_part("replacement", "pi.replace", TURN),
        build_call_part("call_append", "pi.append", TURN, placeholder="call-append"),
    ),
)
