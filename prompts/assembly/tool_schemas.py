"""How tools are described inside a prompt: a line each, or with their whole schema."""

import json
from collections.abc import Mapping
from typing import Any

from prompts.assembly.inputs import Tool
from prompts.assembly.text import cut, single_line

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
