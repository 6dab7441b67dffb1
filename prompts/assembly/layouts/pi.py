"""Pi: a base that SYSTEM.md replaces whole, then what is appended, context, skills, date and directory."""

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
)
from prompts.assembly.sections import NO_CHUNKS
from prompts.assembly.segments import REFRESH, TURN, TextChunk, TextChunks
from prompts.assembly.skill_listing import (
    build_pi_skills,
    frame_skill_listing,
    get_skills_slot_data,
    has_read_tool,
    is_model_invocable,
)
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.text import collapse_lines, join_lines, normalize_line_ends
from prompts.assembly.texts import pi as words
from prompts.assembly.tool_lines import (
    build_guideline_chunks,
    build_tool_chunks,
    format_guidelines,
    format_tool_list,
    get_guidelines_slot_data,
    get_snippets_slot_data,
)
from prompts.assembly.tool_rules import PI_GENERAL_RULES, PI_RULES, ToolGuidelines

PI_GUIDELINES = ToolGuidelines(PI_RULES, PI_GENERAL_RULES)
IDENTITY_INPUTS = ("identity.name", "identity.emoji", "identity.creature", "identity.vibe", "identity.text")
TOOLS_HEADING, GUIDELINES_HEADING, NO_TOOLS_TEXT = "Available tools:", "Guidelines:", "(none)"


def is_base_replaced(inputs: PromptInputs) -> bool:
    """A SYSTEM.md was found; which one, project or global, discovery has settled."""
    return inputs.base is not None and bool(inputs.base.text)


def skip_if_base_replaced(section: SectionBuilder) -> SectionBuilder:
    """A section that goes with the default base; whoever replaces the base owns all of it."""
    return lambda inputs: NO_CHUNKS if is_base_replaced(inputs) else section(inputs)


def build_pi_base(inputs: PromptInputs) -> TextChunks:
    """SYSTEM.md; else the agent's own identity; else pi's sentence."""
    if inputs.base is not None and inputs.base.text:
        return [TextChunk(inputs.base.text, inputs.base.origin)]
    return sections.build_identity_section(inputs) or [TextChunk(words.DEFAULT_IDENTITY)]


def build_pi_tools(inputs: PromptInputs) -> TextChunks:
    return build_tool_chunks(words.TOOL_SNIPPETS, inputs) or [TextChunk(NO_TOOLS_TEXT)]


@register_slot("pi.tools")
def render_pi_tools(slots: Slots, given: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None
    tool_list = format_tool_list(words.TOOL_SNIPPETS, slots.tools, given["snippets"])
    return f"{TOOLS_HEADING}\n{tool_list or NO_TOOLS_TEXT}"


def build_pi_custom_tools(_: PromptInputs) -> TextChunks:
    return [TextChunk(words.CUSTOM_TOOLS_NOTICE)]


def build_pi_guidelines(inputs: PromptInputs) -> TextChunks:
    return build_guideline_chunks(PI_GUIDELINES, inputs)


@register_slot("pi.guidelines")
def render_pi_guidelines(slots: Slots, given: Mapping[str, Any]) -> str | None:
    if slots.tools is None:
        return None
    return f"{GUIDELINES_HEADING}\n{format_guidelines(PI_GUIDELINES, slots.tools, given['own'])}"


def build_documentation_section(inputs: PromptInputs) -> TextChunks:
    """Where to read about pi itself; a path that is not known leaves no line."""
    if inputs.documentation is None:
        return NO_CHUNKS
    paths = (
        ("Main documentation", inputs.documentation.main),
        ("Additional docs", inputs.documentation.additional),
        ("Examples", inputs.documentation.examples),
    )
    said = join_lines(f"- {title}: {collapse_lines(path)}" for title, path in paths if path)
    return [TextChunk(said)] if said else NO_CHUNKS


def build_pi_append(inputs: PromptInputs) -> TextChunks:
    """APPEND_SYSTEM.md, then the agent's instructions: both are directives of the system's level."""
    held = [text for text in (inputs.append, inputs.instructions) if text is not None and text.text]
    return sections.join_chunks([TextChunk(text.text, text.origin) for text in held], "\n\n")


def build_pi_project_context(inputs: PromptInputs) -> TextChunks:
    """Every file under its path, ancestors first."""
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
    """The time is the call's; the directory already stands in the build."""
    directory = format_directory_line(inputs.working_directory)
    return (
        [*build_slot_placeholder("time"), TextChunk(f"\n{directory}")]
        if directory
        else build_slot_placeholder("time")
    )


def format_directory_line(directory: str) -> str:
    return f"Current working directory: {collapse_lines(directory)}" if directory else ""


def get_directory_slot_data(inputs: PromptInputs) -> Mapping[str, Any]:
    return {"directory": format_directory_line(inputs.working_directory)}


@register_slot("pi.date")
def render_pi_date(slots: Slots, given: Mapping[str, Any]) -> str:
    now = slots.now
    if now is None:
        return str(given["directory"])
    moment = f"{format_date(now)} at {format_12_hour_time(now)} {get_zone_name(now, slots.zone)}".rstrip()
    return join_lines((f"Current date and time: {moment}", given["directory"]))


@register_slot("pi.replace")
def render_pi_replacement(slots: Slots, _: Mapping[str, Any]) -> str:
    return normalize_line_ends(slots.replace)


@register_slot("pi.append")
def render_pi_append(slots: Slots, _: Mapping[str, Any]) -> str:
    return normalize_line_ends(slots.append)


def list_pi_displaced_inputs(inputs: PromptInputs) -> Sequence[str]:
    """What a SYSTEM.md costs, and skills that nothing can read."""
    replaced = (*IDENTITY_INPUTS, "tools", "documentation") if is_base_replaced(inputs) else ()
    is_unread = any(map(is_model_invocable, inputs.skills)) and not has_read_tool(inputs)
    return (*replaced, "skills") if is_unread else replaced


BASE_REPLACED_REASON = "the base is replaced"
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
            given=get_snippets_slot_data,
            needs=BASE_REPLACED_REASON,
        ),
        LayoutPart("custom-tools", skip_if_base_replaced(build_pi_custom_tools), needs=BASE_REPLACED_REASON),
        LayoutPart(
            "guidelines",
            skip_if_base_replaced(build_pi_guidelines),
            build_heading_frame(GUIDELINES_HEADING, "\n"),
            uses=("tools",),
            slot="pi.guidelines",
            given=get_guidelines_slot_data,
            needs=BASE_REPLACED_REASON,
        ),
        LayoutPart(
            "documentation",
            skip_if_base_replaced(build_documentation_section),
            build_heading_frame(words.DOCUMENTATION_HEADING, "\n"),
            uses=("documentation",),
            needs="no documentation is named, or the base is replaced",
        ),
        LayoutPart("append", build_pi_append, uses=("append", "instructions")),
        LayoutPart(
            "project-context",
            build_pi_project_context,
            build_heading_frame(words.CONTEXT_HEADING),
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
            given=get_skills_slot_data,
            is_cuttable=True,
            shorten=cut_entries,
            needs="no skill that the model may call",
        ),
        LayoutPart(
            "date-and-directory",
            build_pi_date_and_directory,
            uses=("working_directory",),
            volatility=TURN,
            slot="pi.date",
            given=get_directory_slot_data,
        ),
        # Last but one: what it says takes the place of all before it, and what is appended still follows.
        build_call_part("replacement", "pi.replace", TURN),
        build_call_part("call-append", "pi.append", TURN),
    ),
)
