"""The ptc layout: seven sections with fixed headings, for agents that answer with a PTC-Lisp program."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.data_inventory import build_data_inventory, list_data_problems, parse_data_signature
from prompts.assembly.frames import Frame, build_fixed_heading_frame
from prompts.assembly.inputs import PromptInputs, Text
from prompts.assembly.layout import Layout, LayoutPart, build_call_part
from prompts.assembly.placeholders import expand_placeholders, list_placeholder_problems
from prompts.assembly.report import OmissionReason
from prompts.assembly.sections import NO_CHUNKS
from prompts.assembly.segments import TURN, USER, TextChunk, TextChunks
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.text import close_code_fences, collapse_whitespace, format_bullet
from prompts.assembly.texts.ptc_prose import (
    AGENT_ROLE,
    AGENT_RULES,
    BASE_RULES,
    CALLABLE_TOOLS_HEADING,
    DEFAULT_ERROR_CONTEXT,
    ENDING_TOOLS,
    ERROR_CLOSING,
    ERROR_OPENING,
    OUTPUT_FORMAT,
    PLANNING_TOOLS_INTRODUCTION,
    SINGLE_TURN_ROLE,
)
from prompts.assembly.texts.ptc_reference import LANGUAGE_REFERENCE
from prompts.assembly.tool_catalogue import format_tool_block, list_tool_blocks, list_tool_problems

# The body of a section without content: its heading is kept, unlike with NO_CHUNKS.
EMPTY_BODY: TextChunks = (TextChunk(""),)
ENDING_TOOL_BLOCKS = [format_tool_block(*ending) for ending in ENDING_TOOLS]
RESERVED_TOOL_NAMES = frozenset(name for name, *_ in ENDING_TOOLS)
TOOLS_HEADING = "# Available Tools"
RETURN_FORMAT = "Return format:"


def build_ptc_role(inputs: PromptInputs) -> TextChunks:
    return [TextChunk(AGENT_ROLE if inputs.mode == "agent" else SINGLE_TURN_ROLE)]


def build_ptc_rules(inputs: PromptInputs) -> TextChunks:
    return (
        [TextChunk(BASE_RULES), TextChunk(AGENT_RULES)] if inputs.mode == "agent" else [TextChunk(BASE_RULES)]
    )


def build_ptc_data(inputs: PromptInputs) -> TextChunks:
    return build_data_inventory(inputs) or EMPTY_BODY


def build_ptc_tools(inputs: PromptInputs) -> TextChunks:
    """List the tools that a program can call; in agent mode, these include the tools that end a mission."""
    blocks = [TextChunk(block, tool.origin) for tool, block in list_tool_blocks(inputs, "active")]
    blocks += [TextChunk(ending) for ending in list_ending_tool_blocks(inputs)]
    return (
        sections.join_chunks([TextChunk(CALLABLE_TOOLS_HEADING), *blocks], "\n\n") if blocks else EMPTY_BODY
    )


def list_ending_tool_blocks(inputs: PromptInputs) -> list[str]:
    return ENDING_TOOL_BLOCKS if inputs.mode == "agent" else []


def build_ptc_planning_tools(inputs: PromptInputs) -> TextChunks:
    """List the tools that the agent can plan with but not call."""
    blocks = [TextChunk(block, tool.origin) for tool, block in list_tool_blocks(inputs, "planning")]
    return (
        sections.join_chunks([TextChunk(PLANNING_TOOLS_INTRODUCTION), *blocks], "\n\n")
        if blocks
        else NO_CHUNKS
    )


def get_ptc_tools_data(inputs: PromptInputs) -> Mapping[str, Any]:
    """Return the tools that a call can choose from, and the built-in tools that are always included."""
    return {
        "tools": {tool.name: block for tool, block in list_tool_blocks(inputs, "active")},
        "endings": list_ending_tool_blocks(inputs),
    }


@register_slot("ptc.tools")
def render_ptc_tools(slots: Slots, slot_data: Mapping[str, Any]) -> str | None:
    """Render the tools in the order in which a call names them; undefined names appear only in the report."""
    if slots.tools is None:
        return None
    blocks_by_name = slot_data["tools"]
    blocks = [
        *[blocks_by_name[name] for name in dict.fromkeys(slots.tools) if name in blocks_by_name],
        *slot_data["endings"],
    ]
    return "\n\n".join([TOOLS_HEADING, CALLABLE_TOOLS_HEADING, *blocks] if blocks else [TOOLS_HEADING])


def build_ptc_reference(inputs: PromptInputs) -> TextChunks:
    if inputs.limits.omit_reference:
        return NO_CHUNKS
    return [TextChunk(text) for text in LANGUAGE_REFERENCE]


def build_ptc_output_format(_: PromptInputs) -> TextChunks:
    return [TextChunk(OUTPUT_FORMAT)]


def get_mission_template(inputs: PromptInputs) -> tuple[Text, str]:
    """Return the mission, or else the instructions, and the name of that input."""
    if inputs.mission is not None and inputs.mission.text.strip():
        return inputs.mission, "mission"
    return inputs.instructions or Text(""), "instructions"


def build_ptc_mission(inputs: PromptInputs) -> TextChunks:
    """Build the mission with its placeholders expanded, and the result type of the data's signature."""
    template, where = get_mission_template(inputs)
    chunks = expand_placeholders(template, inputs.data, where)
    if not any(chunk.text.strip() for chunk in chunks):
        chunks = []
    return [*chunks, *build_return_format(inputs, template, chunks)] or EMPTY_BODY


def build_return_format(inputs: PromptInputs, template: Text, mission: Sequence[TextChunk]) -> TextChunks:
    """Build the last line of the mission, unless the mission has such a line or there is no result type."""
    returns = parse_data_signature(inputs.data).returns if inputs.data else ""
    has_line = any(line.lstrip().startswith(RETURN_FORMAT) for line in template.text.splitlines())
    if inputs.data is None or not returns or has_line:
        return NO_CHUNKS
    text = "".join([chunk.text for chunk in mission])
    # Close a code block that the mission leaves open, so that the return format is not inside it.
    closing = close_code_fences(text)[len(text) :]
    text += closing
    gap = "\n" * max(0, 2 - (len(text) - len(text.rstrip("\n")))) if text else ""
    return [TextChunk(f"{closing}{gap}{RETURN_FORMAT} {returns}", inputs.data.origin)]


def frame_with_closed_fences(frame: Frame) -> Frame:
    """Wrap a frame so that a code block left open by the body, for example by truncation, is closed."""

    def around(body: TextChunks) -> TextChunks:
        body_text = "".join([text for text, _ in body])
        closing = close_code_fences(body_text)[len(body_text) :]
        return frame([*body, TextChunk(closing)] if closing else body)

    return around


@register_slot("ptc.error")
def render_ptc_error(slots: Slots, _: Mapping[str, Any]) -> str:
    """Render why the last program failed; continuation lines stay in their list entry."""
    previous_error = slots.previous_error
    if previous_error is None:
        return ""
    lines = [f"**Error**: {collapse_whitespace(previous_error.error)}"]
    if previous_error.message:
        lines.append(f"**Message**: {previous_error.message}")
    lines.append(f"**Context**: {previous_error.context or DEFAULT_ERROR_CONTEXT}")
    return "\n".join([ERROR_OPENING, *map(format_bullet, lines), "", ERROR_CLOSING])


def list_ptc_problems(inputs: PromptInputs) -> list[str]:
    text, where = get_mission_template(inputs)
    return [
        *list_data_problems(inputs),
        *list_tool_problems(inputs, RESERVED_TOOL_NAMES),
        *list_placeholder_problems(text, inputs.data, where),
    ]


def list_ptc_displaced_inputs(inputs: PromptInputs) -> Sequence[str]:
    """List instructions as displaced when a mission replaces them."""
    return ("instructions",) if get_mission_template(inputs)[1] == "mission" else ()


PTC_LAYOUT = Layout(
    name="ptc",
    summary="Seven headed sections around a PTC-Lisp program; the headings always stand.",
    slots=("tools", "previous_error", "mode"),
    problems=list_ptc_problems,
    displaced=list_ptc_displaced_inputs,
    parts=(
        LayoutPart("role", build_ptc_role, build_fixed_heading_frame("# Role")),
        LayoutPart("rules", build_ptc_rules, build_fixed_heading_frame("# Rules")),
        LayoutPart(
            "data",
            build_ptc_data,
            build_fixed_heading_frame("# Data Inventory"),
            uses=("data",),
            volatility=USER,
            is_cuttable=True,
            shorten=cut_entries,
        ),
        LayoutPart(
            "tools",
            build_ptc_tools,
            build_fixed_heading_frame(TOOLS_HEADING),
            uses=("tools",),
            slot="ptc.tools",
            slot_data=get_ptc_tools_data,
            shorten=cut_entries,
        ),
        LayoutPart(
            "planning_tools",
            build_ptc_planning_tools,
            uses=("planning_tools",),
            omission_reason=OmissionReason.NO_PLANNING_TOOLS,
            shorten=cut_entries,
        ),
        LayoutPart(
            "reference",
            build_ptc_reference,
            build_fixed_heading_frame("# PTC-Lisp Quick Reference"),
            omission_reason=OmissionReason.REFERENCE_OFF,
            is_cuttable=True,
            shorten=cut_entries,
        ),
        LayoutPart("output_format", build_ptc_output_format, build_fixed_heading_frame("# Output Format")),
        LayoutPart(
            "mission",
            build_ptc_mission,
            frame_with_closed_fences(build_fixed_heading_frame("# Mission")),
            uses=("mission", "instructions"),
        ),
        build_call_part("previous_error", "ptc.error", TURN),
    ),
)
