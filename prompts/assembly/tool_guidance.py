"""What an agent is told about its tools: that it has them, what they are, how to call and to use them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prompts.assembly.inputs import Tool
from prompts.assembly.sections import NO_CHUNKS, join_chunks
from prompts.assembly.segments import LAYOUT_ORIGIN, TextChunk, TextChunks
from prompts.assembly.text import collapse_whitespace, format_bullet, truncate_text
from prompts.assembly.texts.moltis import (
    GENERAL_RULES,
    MEMORY_RULES,
    SILENT_REPLIES,
    TOOL_CALLING_GUIDE,
    TOOL_RULES,
)
from prompts.assembly.tool_rules import ToolGuidelines, list_matching_lines

# What a compact line may say of a tool; its schema travels beside the prompt.
MAX_DESCRIPTION_LENGTH = 160


def format_compact_tool(tool: Tool) -> str:
    """`- name: description`, cut to size."""
    name, said = collapse_whitespace(tool.name), truncate_text(describe_tool(tool), MAX_DESCRIPTION_LENGTH)
    return f"- {name}: {said}" if said else f"- {name}"


def format_full_tool(tool: Tool) -> str:
    """Name, description and parameter schema, for providers that take no tool definitions."""
    takes = (
        f"Parameters:\n```json\n{format_tool_schema(tool.parameters)}\n```"
        if tool.parameters
        else "Parameters: none"
    )
    said = (f"### {collapse_whitespace(tool.name)}", describe_tool(tool), takes)
    return "\n\n".join([each for each in said if each])


def describe_tool(tool: Tool) -> str:
    """What a tool does, on one line; its snippet speaks for it when nothing else does."""
    return collapse_whitespace(tool.description or tool.snippet)


def format_tool_schema(parameters: Mapping[str, Any]) -> str:
    """The schema on one line, so that nothing in it can end the fence around it."""
    return json.dumps(parameters, ensure_ascii=False, default=convert_json_default)


def convert_json_default(value: Any) -> Any:
    """What JSON has no form for: mappings that are no dict as objects, all else in its own words."""
    return dict(value) if isinstance(value, Mapping) else str(value)


INTRODUCTION_WITH_TOOLS = "You are a helpful assistant with access to tools for executing shell commands."
INTRODUCTION_WITHOUT_TOOLS = "You are a helpful assistant. Answer questions clearly and concisely."


def build_tools_introduction(tools: Sequence[Tool], _: bool) -> TextChunks:
    return [TextChunk(INTRODUCTION_WITH_TOOLS if tools else INTRODUCTION_WITHOUT_TOOLS)]


def build_memory_hint(tools: Sequence[Tool], _: bool) -> TextChunks:
    """Only for agents that can reach their memory."""
    names = {tool.name for tool in tools if tool.name.startswith("memory")}
    return [TextChunk(" ".join(list_matching_lines(MEMORY_RULES, names)))] if names else NO_CHUNKS


def build_tool_schemas(tools: Sequence[Tool], native: bool) -> TextChunks:
    """A line each where the provider takes definitions; whole schemas where it does not."""
    described, gap = (format_compact_tool, "\n") if native else (format_full_tool, "\n\n")
    return join_chunks([(described(tool), tool.origin) for tool in tools], gap)


def build_calling_guide(tools: Sequence[Tool], native: bool) -> TextChunks:
    return [TextChunk(TOOL_CALLING_GUIDE)] if tools and not native else NO_CHUNKS


def build_guidelines_section(table: ToolGuidelines) -> Callable[[Sequence[Tool], bool], TextChunks]:
    """The lines a table has for these tools and what each asks for itself, every line once."""

    def told(tools: Sequence[Tool], _: bool) -> TextChunks:
        own = {tool.name: tool for tool in tools}
        asked = {name: tool.guidelines for name, tool in own.items() if tool.guidelines}
        lines = table.told(own, asked).items()
        return join_chunks(
            [(format_bullet(line), own[name].origin if name else LAYOUT_ORIGIN) for line, name in lines]
        )

    return told


def build_moltis_guidelines(tools: Sequence[Tool], _: bool) -> TextChunks:
    """How to use the tools, what each asks for itself, every line once; then when to stay silent."""
    if not tools:
        return [TextChunk("\n".join([format_bullet(line) for line in GENERAL_RULES]))]
    return [*GUIDELINES_SECTION(tools, True), TextChunk(f"\n\n## Silent Replies\n\n{SILENT_REPLIES}")]


GUIDELINES_SECTION = build_guidelines_section(ToolGuidelines(TOOL_RULES))
