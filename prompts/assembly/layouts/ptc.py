"""PTC: seven headed sections for agents that answer with a PTC-Lisp program; the headings always stand."""

from collections.abc import Mapping, Sequence
from typing import Any

from prompts.assembly import sections
from prompts.assembly.budget import cut_entries
from prompts.assembly.data_inventory import data_problems, inventory
from prompts.assembly.frames import Frame, standing
from prompts.assembly.inputs import PromptInputs, Text
from prompts.assembly.layout import Layout, Part, call_part
from prompts.assembly.placeholders import expanded, unfilled
from prompts.assembly.sections import NOTHING_TO_SAY
from prompts.assembly.segments import TURN, USER, Piece, Pieces
from prompts.assembly.slots import Slots, slot
from prompts.assembly.text import bullet, fences_closed, single_line
from prompts.assembly.texts.ptc_prose import (
    AGENT_RULES,
    CALLABLE,
    ENDING_TOOLS,
    ERROR_CLOSING,
    ERROR_CONTEXT,
    ERROR_OPENING,
    OUTPUT_FORMAT,
    PLANNING,
    ROLE,
    RULES,
    SINGLE_TURN_ROLE,
)
from prompts.assembly.texts.ptc_reference import REFERENCE
from prompts.assembly.tool_catalogue import block, blocks, tool_problems

# An empty body under a heading that stays.
SILENT: Pieces = (Piece(""),)
ENDINGS = [block(*ending) for ending in ENDING_TOOLS]
RESERVED = frozenset(name for name, *_ in ENDING_TOOLS)
TOOLS = "# Available Tools"


def role(inputs: PromptInputs) -> Pieces:
    return [Piece(ROLE if inputs.mode == "agent" else SINGLE_TURN_ROLE)]


def rules(inputs: PromptInputs) -> Pieces:
    return [Piece(RULES), Piece(AGENT_RULES)] if inputs.mode == "agent" else [Piece(RULES)]


def data(inputs: PromptInputs) -> Pieces:
    return inventory(inputs) or SILENT


def tools(inputs: PromptInputs) -> Pieces:
    """What a program can call; an agent can always end its mission, a single turn has nothing to end."""
    made = [Piece(said, tool.origin) for tool, said in blocks(inputs, "active")]
    made += [Piece(ending) for ending in endings(inputs)]
    return sections.listed([Piece(CALLABLE), *made], "\n\n") if made else SILENT


def endings(inputs: PromptInputs) -> list[str]:
    return ENDINGS if inputs.mode == "agent" else []


def planning_tools(inputs: PromptInputs) -> Pieces:
    """What the agent may reckon with but not call."""
    made = [Piece(said, tool.origin) for tool, said in blocks(inputs, "planning")]
    return sections.listed([Piece(PLANNING), *made], "\n\n") if made else NOTHING_TO_SAY


def given_to_tools(inputs: PromptInputs) -> Mapping[str, Any]:
    """The tools a call can choose from, and those it always gets."""
    return {"tools": {tool.name: said for tool, said in blocks(inputs, "active")}, "endings": endings(inputs)}


@slot("ptc.tools")
def tools_of_call(slots: Slots, given: Mapping[str, Any]) -> str | None:
    """The tools a call names, in its order; a name that nobody defined is reported, not described."""
    if slots.tools is None:
        return None
    known = given["tools"]
    said = [*[known[name] for name in dict.fromkeys(slots.tools) if name in known], *given["endings"]]
    return "\n\n".join([TOOLS, CALLABLE, *said] if said else [TOOLS])


def reference(inputs: PromptInputs) -> Pieces:
    if inputs.limits.omit_reference:
        return NOTHING_TO_SAY
    return [Piece(words) for words in REFERENCE]


def output_format(_: PromptInputs) -> Pieces:
    return [Piece(OUTPUT_FORMAT)]


def template(inputs: PromptInputs) -> tuple[Text, str]:
    """What the agent is to do, and the input that says it: its mission, else its instructions."""
    if inputs.mission is not None and inputs.mission.text.strip():
        return inputs.mission, "mission"
    return inputs.instructions or Text(""), "instructions"


def mission(inputs: PromptInputs) -> Pieces:
    """The task with its placeholders filled."""
    text, where = template(inputs)
    pieces = expanded(text, inputs.data, where)
    return pieces if any(piece.text.strip() for piece in pieces) else SILENT


def closed(frame: Frame) -> Frame:
    """The frame around words that may leave a code block open: it ends where they end, cut or not."""

    def around(body: Pieces) -> Pieces:
        whole = "".join([text for text, _ in body])
        closing = fences_closed(whole)[len(whole) :]
        return frame([*body, Piece(closing)] if closing else body)

    return around


@slot("ptc.error")
def previous_error(slots: Slots, _: Mapping[str, Any]) -> str:
    """Why the last program failed; further lines of a message stay in its list entry."""
    failed = slots.previous_error
    if failed is None:
        return ""
    said = [f"**Error**: {single_line(failed.error)}"]
    if failed.message:
        said.append(f"**Message**: {failed.message}")
    said.append(f"**Context**: {failed.context or ERROR_CONTEXT}")
    return "\n".join([ERROR_OPENING, *map(bullet, said), "", ERROR_CLOSING])


def problems(inputs: PromptInputs) -> list[str]:
    text, where = template(inputs)
    return [
        *data_problems(inputs),
        *tool_problems(inputs, RESERVED),
        *unfilled(text, inputs.data, where),
    ]


def displaced(inputs: PromptInputs) -> Sequence[str]:
    """A mission takes the place of the agent's instructions."""
    return ("instructions",) if template(inputs)[1] == "mission" else ()


PTC = Layout(
    name="ptc",
    summary="Seven headed sections around a PTC-Lisp program; the headings always stand.",
    slots=("tools", "previous_error"),
    problems=problems,
    displaced=displaced,
    parts=(
        Part("role", role, standing("# Role")),
        Part("rules", rules, standing("# Rules")),
        Part(
            "data",
            data,
            standing("# Data Inventory"),
            uses=("data",),
            volatility=USER,
            is_cuttable=True,
            shorten=cut_entries,
        ),
        Part(
            "tools",
            tools,
            standing(TOOLS),
            uses=("tools",),
            slot="ptc.tools",
            given=given_to_tools,
            shorten=cut_entries,
        ),
        Part(
            "planning_tools",
            planning_tools,
            uses=("planning_tools",),
            needs="no tools for planning",
            shorten=cut_entries,
        ),
        Part(
            "reference",
            reference,
            standing("# PTC-Lisp Quick Reference"),
            needs="left out by limits.omit_reference",
            is_cuttable=True,
            shorten=cut_entries,
        ),
        Part("output_format", output_format, standing("# Output Format")),
        Part("mission", mission, closed(standing("# Mission")), uses=("mission", "instructions")),
        call_part("previous_error", "ptc.error", TURN),
    ),
)
