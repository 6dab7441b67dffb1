"""Build the sections about tools: introduction, descriptions, calling guide and guidelines."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prompts.assembly.inputs import ToolInput
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

# In characters, for compact lines: the full description is in the tool definition sent with the prompt.
MAX_DESCRIPTION_LENGTH = 160


def format_compact_tool(tool: ToolInput) -> str:
    """Format a tool as `- name: description`; a long description is truncated."""
    name, description = (
        collapse_whitespace(tool.name),
        truncate_text(describe_tool(tool), MAX_DESCRIPTION_LENGTH),
    )
    return f"- {name}: {description}" if description else f"- {name}"


def format_full_tool(tool: ToolInput) -> str:
    """Format name, description and parameter schema, for providers without native tool definitions."""
    parameters = (
        f"Parameters:\n```json\n{format_tool_schema(tool.parameters)}\n```"
        if tool.parameters
        else "Parameters: none"
    )
    blocks = (f"### {collapse_whitespace(tool.name)}", describe_tool(tool), parameters)
    return "\n\n".join([block for block in blocks if block])


def describe_tool(tool: ToolInput) -> str:
    """Return the description of a tool, or its snippet if it has no description, on one line."""
    return collapse_whitespace(tool.description or tool.snippet)


def format_tool_schema(parameters: Mapping[str, Any]) -> str:
    """Format the parameter schema as one line of JSON, so that no line in it can end the code fence."""
    return json.dumps(parameters, ensure_ascii=False, default=convert_json_default)


def convert_json_default(value: Any) -> Any:
    """Convert values that json cannot encode: mappings to dict, everything else to text."""
    return dict(value) if isinstance(value, Mapping) else str(value)


INTRODUCTION_WITH_TOOLS = "You are a helpful assistant with access to tools for executing shell commands."
INTRODUCTION_WITHOUT_TOOLS = "You are a helpful assistant. Answer questions clearly and concisely."


def build_tools_introduction(tools: Sequence[ToolInput], _: bool) -> TextChunks:
    return [TextChunk(INTRODUCTION_WITH_TOOLS if tools else INTRODUCTION_WITHOUT_TOOLS)]


def build_memory_hint(tools: Sequence[ToolInput], _: bool) -> TextChunks:
    """Build the hint about long-term memory, for agents that have memory tools."""
    names = {tool.name for tool in tools if tool.name.startswith("memory")}
    return [TextChunk(" ".join(list_matching_lines(MEMORY_RULES, names)))] if names else NO_CHUNKS


def build_tool_schemas(tools: Sequence[ToolInput], native: bool) -> TextChunks:
    """Format the tools: one line each if the provider accepts tool definitions, else with full schemas."""
    formatter, gap = (format_compact_tool, "\n") if native else (format_full_tool, "\n\n")
    return join_chunks([(formatter(tool), tool.origin) for tool in tools], gap)


def build_calling_guide(tools: Sequence[ToolInput], native: bool) -> TextChunks:
    return [TextChunk(TOOL_CALLING_GUIDE)] if tools and not native else NO_CHUNKS


def build_guidelines_section(table: ToolGuidelines) -> Callable[[Sequence[ToolInput], bool], TextChunks]:
    """Return a section builder that lists matching rules and the tools' own guidelines, each line once."""

    def section(tools: Sequence[ToolInput], _: bool) -> TextChunks:
        tools_by_name = {tool.name: tool for tool in tools}
        own = {name: tool.guidelines for name, tool in tools_by_name.items() if tool.guidelines}
        lines = table.select_lines(tools_by_name, own).items()
        return join_chunks(
            [
                (format_bullet(line), tools_by_name[name].origin if name else LAYOUT_ORIGIN)
                for line, name in lines
            ]
        )

    return section


def build_moltis_guidelines(tools: Sequence[ToolInput], _: bool) -> TextChunks:
    """Build the guidelines for the tools and the rules for silent replies; general rules without tools."""
    if not tools:
        return [TextChunk("\n".join([format_bullet(line) for line in GENERAL_RULES]))]
    return [*GUIDELINES_SECTION(tools, True), TextChunk(f"\n\n## Silent Replies\n\n{SILENT_REPLIES}")]


GUIDELINES_SECTION = build_guidelines_section(ToolGuidelines(TOOL_RULES))
