"""What an agent is told about its tools: that it has them, what they are, how to call and to use them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prompts.assembly.inputs import Tool
from prompts.assembly.sections import NOTHING_TO_SAY, listed
from prompts.assembly.segments import OURS, Piece, Pieces
from prompts.assembly.text import bullet, cut, single_line
from prompts.assembly.texts.moltis import (
    CALLING,
    GENERAL_RULES,
    MEMORY_RULES,
    SILENT_REPLIES,
    TOOL_RULES,
)
from prompts.assembly.tool_rules import Guidelines, matching

# What a compact line may say of a tool; its schema travels beside the prompt.
COMPACT = 160


def compact(tool: Tool) -> str:
    """`- name: description`, cut to size."""
    name, said = single_line(tool.name), cut(described(tool), COMPACT)
    return f"- {name}: {said}" if said else f"- {name}"


def whole(tool: Tool) -> str:
    """Name, description and parameter schema, for providers that take no tool definitions."""
    takes = f"Parameters:\n```json\n{schema(tool.parameters)}\n```" if tool.parameters else "Parameters: none"
    said = (f"### {single_line(tool.name)}", described(tool), takes)
    return "\n\n".join([each for each in said if each])


def described(tool: Tool) -> str:
    """What a tool does, on one line; its snippet speaks for it when nothing else does."""
    return single_line(tool.description or tool.snippet)


def schema(parameters: Mapping[str, Any]) -> str:
    """The schema on one line, so that nothing in it can end the fence around it."""
    return json.dumps(parameters, ensure_ascii=False, default=plain)


def plain(value: Any) -> Any:
    """What JSON has no form for: mappings that are no dict as objects, all else in its own words."""
    return dict(value) if isinstance(value, Mapping) else str(value)


WITH_TOOLS = "You are a helpful assistant with access to tools for executing shell commands."
WITHOUT_TOOLS = "You are a helpful assistant. Answer questions clearly and concisely."


def introduction(tools: Sequence[Tool], _: bool) -> Pieces:
    return [Piece(WITH_TOOLS if tools else WITHOUT_TOOLS)]


def memory_hint(tools: Sequence[Tool], _: bool) -> Pieces:
    """Only for agents that can reach their memory."""
    names = {tool.name for tool in tools if tool.name.startswith("memory")}
    return [Piece(" ".join(matching(MEMORY_RULES, names)))] if names else NOTHING_TO_SAY


def tool_schemas(tools: Sequence[Tool], native: bool) -> Pieces:
    """A line each where the provider takes definitions; whole schemas where it does not."""
    described, gap = (compact, "\n") if native else (whole, "\n\n")
    return listed([(described(tool), tool.origin) for tool in tools], gap)


def calling(tools: Sequence[Tool], native: bool) -> Pieces:
    return [Piece(CALLING)] if tools and not native else NOTHING_TO_SAY


def ruled(table: Guidelines) -> Callable[[Sequence[Tool], bool], Pieces]:
    """The lines a table has for these tools and what each asks for itself, every line once."""

    def told(tools: Sequence[Tool], _: bool) -> Pieces:
        own = {tool.name: tool for tool in tools}
        asked = {name: tool.guidelines for name, tool in own.items() if tool.guidelines}
        lines = table.told(own, asked).items()
        return listed([(bullet(line), own[name].origin if name else OURS) for line, name in lines])

    return told


def guidelines(tools: Sequence[Tool], _: bool) -> Pieces:
    """How to use the tools, what each asks for itself, every line once; then when to stay silent."""
    if not tools:
        return [Piece("\n".join([bullet(line) for line in GENERAL_RULES]))]
    return [*RULED(tools, True), Piece(f"\n\n## Silent Replies\n\n{SILENT_REPLIES}")]


RULED = ruled(Guidelines(TOOL_RULES))
