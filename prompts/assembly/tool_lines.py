"""Sections that depend on the active tools; rendered again when a call names other tools."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prompts.assembly.frames import Frame, leave_unframed
from prompts.assembly.inputs import PromptInputs, ToolInput
from prompts.assembly.layout import LayoutPart
from prompts.assembly.sections import join_chunks, strip_first_gap
from prompts.assembly.segments import LAYOUT_ORIGIN, TextChunks
from prompts.assembly.slots import Slots, register_slot
from prompts.assembly.text import collapse_lines, collapse_whitespace
from prompts.assembly.tool_rules import ToolGuidelines

OwnGuidelines = Mapping[str, Sequence[str]]


def get_own_guidelines(inputs: PromptInputs) -> OwnGuidelines:
    """Return the guidelines of each active tool by tool name, each guideline on one line."""
    return {
        tool.name: [collapse_lines(line) for line in tool.guidelines if line and not line.isspace()]
        for tool in inputs.tools
        if tool.guidelines and tool.use == "active"
    }


def build_guideline_chunks(guidelines: ToolGuidelines, inputs: PromptInputs) -> TextChunks:
    """Build a bullet for each guideline, with the tool it belongs to as its origin."""
    origins = {tool.name: tool.origin for tool in inputs.tools if tool.use == "active"}
    lines = guidelines.select_lines(origins, get_own_guidelines(inputs))
    return strip_first_gap(
        [(f"\n- {line}", origins.get(name, LAYOUT_ORIGIN)) for line, name in lines.items()]
    )


def format_guidelines(guidelines: ToolGuidelines, names: Iterable[str], own: OwnGuidelines) -> str:
    """Format the guidelines for the tools of one call."""
    return "\n".join([f"- {line}" for line in guidelines.select_lines(names, own)])


def get_guidelines_slot_data(inputs: PromptInputs) -> Mapping[str, Any]:
    """Return the guidelines as slot data, so that calls with other tools can be rendered without records."""
    return {"own": get_own_guidelines(inputs)}


def build_tool_chunks(builtin: Mapping[str, str], inputs: PromptInputs) -> TextChunks:
    """Build a line for each active tool."""
    snippets = get_own_snippets(builtin, inputs)
    return join_chunks(
        [(format_tool_line(tool.name, snippets, builtin), tool.origin) for tool in inputs.active_tools()]
    )


def format_tool_list(builtin: Mapping[str, str], names: Iterable[str], snippets: Mapping[str, str]) -> str:
    """Format the tool list for the tools of one call."""
    return "\n".join([format_tool_line(name, snippets, builtin) for name in dict.fromkeys(names)])


def format_tool_line(name: str, snippets: Mapping[str, str], builtin: Mapping[str, str]) -> str:
    """Format `- name: snippet`, with the tool's own text, else the built-in snippet, else the name."""
    label = collapse_lines(name)
    return f"- {label}: {collapse_whitespace(snippets.get(name, '')) or builtin.get(name) or label}"


def get_own_snippets(builtin: Mapping[str, str], inputs: PromptInputs) -> Mapping[str, str]:
    """Return the snippet of each active tool or, without a built-in one, the first line of its description.

    Tools that have neither are left out.
    """
    snippets = {
        tool.name: tool.snippet or (get_first_line(tool.description) if tool.name not in builtin else "")
        for tool in inputs.active_tools()
    }
    return {name: snippet for name, snippet in snippets.items() if snippet}


def get_first_line(text: str) -> str:
    """Return the first line that is not blank, without space around it."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


# Builds a section from the tools and a flag that tells whether the provider accepts tool definitions.
ToolSection = Callable[[Sequence[ToolInput], bool], TextChunks]


def build_tool_part(
    slot_name: str,
    build_section: ToolSection,
    *,
    frame: Frame = leave_unframed,
    keeps: tuple[str, ...] = (),
    **more: Any,
) -> LayoutPart:
    """Build a part about tools, named after the last component of the slot name.

    `keeps` lists the tool fields that rendering needs; they are stored as slot data.
    """

    @register_slot(slot_name)
    def render(slots: Slots, slot_data: Mapping[str, Any]) -> str | None:
        if slots.tools is None:
            return None
        body = build_section(build_called_tools(slots.tools, slot_data["tools"]), slot_data["native"])
        return "".join([text for text, _ in frame(body)]) if body else ""

    def get_slot_data(inputs: PromptInputs) -> Mapping[str, Any]:
        tools = list_offered_tools(inputs)
        kept = {tool.name: {key: getattr(tool, key) for key in keeps} if keeps else {} for tool in tools}
        return {"tools": kept, "native": inputs.native_tools}

    def section(inputs: PromptInputs) -> TextChunks:
        return build_section(list_offered_tools(inputs), inputs.native_tools)

    name = slot_name.rpartition(".")[2]
    return LayoutPart(name, section, frame, uses=("tools",), slot=slot_name, slot_data=get_slot_data, **more)


def list_offered_tools(inputs: PromptInputs) -> Sequence[ToolInput]:
    """List the active tools; the minimal entry point has none."""
    if inputs.entry == "minimal":
        return ()
    return [tool for tool in inputs.tools if tool.use == "active"]


def build_called_tools(names: Sequence[str], kept: Mapping[str, Mapping[str, Any]]) -> list[ToolInput]:
    """Build the tools that a call names, from their stored fields; ignore duplicates and unknown names."""
    return [ToolInput(name, **kept[name]) for name in dict.fromkeys(names) if name in kept]
