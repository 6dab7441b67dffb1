"""PTC: seven headed sections for agents that answer with a PTC-Lisp program; the headings always stand."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.data_inventory import build_data_inventory, list_data_problems
from prompts.assembly.frames import Frame, build_fixed_heading_frame
from prompts.assembly.inputs import PromptInputs, Text
from prompts.assembly.layout import Layout, LayoutPart, build_call_part
from prompts.assembly.placeholders import expand_placeholders, list_placeholder_problems
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

# An empty body under a heading that stays.
EMPTY_BODY: TextChunks = (TextChunk(""),)
ENDING_TOOL_BLOCKS = [format_tool_block(*ending) for ending in ENDING_TOOLS]
RESERVED_TOOL_NAMES = frozenset(name for name, *_ in ENDING_TOOLS)
TOOLS_HEADING = "# Available Tools"


def build_ptc_role(inputs: PromptInputs) -> TextChunks:
    return [TextChunk(AGENT_ROLE if inputs.mode == "agent" else SINGLE_TURN_ROLE)]


def build_ptc_rules(inputs: PromptInputs) -> TextChunks:
    return (
        [TextChunk(BASE_RULES), TextChunk(AGENT_RULES)] if inputs.mode == "agent" else [TextChunk(BASE_RULES)]
    )


def build_ptc_data(inputs: PromptInputs) -> TextChunks:
    return build_data_inventory(inputs) or EMPTY_BODY


def build_ptc_tools(inputs: PromptInputs) -> TextChunks:
    """What a program can call; an agent can always end its mission, a single turn has nothing to end."""
    made = [TextChunk(said, tool.origin) for tool, said in list_tool_blocks(inputs, "active")]
    made += [TextChunk(ending) for ending in list_ending_tool_blocks(inputs)]
    return sections.join_chunks([TextChunk(CALLABLE_TOOLS_HEADING), *made], "\n\n") if made else EMPTY_BODY


def list_ending_tool_blocks(inputs: PromptInputs) -> list[str]:
    return ENDING_TOOL_BLOCKS if inputs.mode == "agent" else []


def build_ptc_planning_tools(inputs: PromptInputs) -> TextChunks:
    """What the agent may reckon with but not call."""
    made = [TextChunk(said, tool.origin) for tool, said in list_tool_blocks(inputs, "planning")]
    return (
        sections.join_chunks([TextChunk(PLANNING_TOOLS_INTRODUCTION), *made], "\n\n") if made else NO_CHUNKS
    )


def get_ptc_tools_data(inputs: PromptInputs) -> Mapping[str, Any]:
    """The tools a call can choose from, and those it always gets."""
    return {
        "tools": {tool.name: said for tool, said in list_tool_blocks(inputs, "active")},
        "endings": list_ending_tool_blocks(inputs),
    }


@register_slot("ptc.tools")
def render_ptc_tools(slots: Slots, given: Mapping[str, Any]) -> str | None:
    """The tools a call names, in its order; a name that nobody defined is reported, not described."""
    if slots.tools is None:
        return None
    known = given["tools"]
    said = [*[known[name] for name in dict.fromkeys(slots.tools) if name in known], *given["endings"]]
    return "\n\n".join([TOOLS_HEADING, CALLABLE_TOOLS_HEADING, *said] if said else [TOOLS_HEADING])


def build_ptc_reference(inputs: PromptInputs) -> TextChunks:
    if inputs.limits.omit_reference:
        return NO_CHUNKS
    return [TextChunk(words) for words in LANGUAGE_REFERENCE]


def build_ptc_output_format(_: PromptInputs) -> TextChunks:
    return [TextChunk(OUTPUT_FORMAT)]


def get_mission_template(inputs: PromptInputs) -> tuple[Text, str]:
    """What the agent is to do, and the input that says it: its mission, else its instructions."""
    if inputs.mission is not None and inputs.mission.text.strip():
        return inputs.mission, "mission"
    return inputs.instructions or Text(""), "instructions"


def build_ptc_mission(inputs: PromptInputs) -> TextChunks:
    """The task with its placeholders filled."""
    text, where = get_mission_template(inputs)
    pieces = expand_placeholders(text, inputs.data, where)
    return pieces if any(piece.text.strip() for piece in pieces) else EMPTY_BODY


def frame_with_closed_fences(frame: Frame) -> Frame:
    """The frame around words that may leave a code block open: it ends where they end, cut or not."""

    def around(body: TextChunks) -> TextChunks:
        whole = "".join([text for text, _ in body])
        closing = close_code_fences(whole)[len(whole) :]
        return frame([*body, TextChunk(closing)] if closing else body)

    return around


@register_slot("ptc.error")
def render_ptc_error(slots: Slots, _: Mapping[str, Any]) -> str:
    """Why the last program failed; further lines of a message stay in its list entry."""
    failed = slots.previous_error
    if failed is None:
        return ""
    said = [f"**Error**: {collapse_whitespace(failed.error)}"]
    if failed.message:
        said.append(f"**Message**: {failed.message}")
    said.append(f"**Context**: {failed.context or DEFAULT_ERROR_CONTEXT}")
    return "\n".join([ERROR_OPENING, *map(format_bullet, said), "", ERROR_CLOSING])


def list_ptc_problems(inputs: PromptInputs) -> list[str]:
    text, where = get_mission_template(inputs)
    return [
        *list_data_problems(inputs),
        *list_tool_problems(inputs, RESERVED_TOOL_NAMES),
        *list_placeholder_problems(text, inputs.data, where),
    ]


def list_ptc_displaced_inputs(inputs: PromptInputs) -> Sequence[str]:
    """A mission takes the place of the agent's instructions."""
    return ("instructions",) if get_mission_template(inputs)[1] == "mission" else ()


PTC_LAYOUT = Layout(
    name="ptc",
    summary="Seven headed sections around a PTC-Lisp program; the headings always stand.",
    slots=("tools", "previous_error"),
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
            given=get_ptc_tools_data,
            shorten=cut_entries,
        ),
        LayoutPart(
            "planning_tools",
            build_ptc_planning_tools,
            uses=("planning_tools",),
            needs="no tools for planning",
            shorten=cut_entries,
        ),
        LayoutPart(
            "reference",
            build_ptc_reference,
            build_fixed_heading_frame("# PTC-Lisp Quick Reference"),
            needs="left out by limits.omit_reference",
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
