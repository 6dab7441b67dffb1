"""What a model sees besides the prompt: the tool definitions for the provider's interface."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from prompts.assembly.inputs import NOTHING, PromptInputs


class ToolDefinition(NamedTuple):
    """Name, description and parameter schema of one active tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def tool_definitions(inputs: PromptInputs) -> tuple[ToolDefinition, ...]:
    """Only active tools, in their order; planning tools are words in the prompt and no more."""
    return tuple(
        [
            ToolDefinition(tool.name, tool.description, tool.parameters or NOTHING)
            for tool in inputs.tools
            if tool.use == "active"
        ]
    )
