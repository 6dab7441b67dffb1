"""What a model sees besides the prompt: the tool definitions for the provider's interface."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from prompts.assembly.inputs import EMPTY_OBJECT, PromptInputs

# Twice as quick as the constructor, at every build.
new_tuple = tuple.__new__


class ToolDefinition(NamedTuple):
    """Name, description and parameter schema of one active tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def list_tool_definitions(inputs: PromptInputs) -> tuple[ToolDefinition, ...]:
    """Only active tools, in their order; planning tools are words in the prompt and no more."""
    return tuple(
        [
            new_tuple(ToolDefinition, (tool.name, tool.description, tool.parameters or EMPTY_OBJECT))
            for tool in inputs.tools
            if tool.use == "active"
        ]
    )


def can_offer_definitions(inputs: PromptInputs) -> bool:
    """A provider that takes no definitions gets none, and neither does an entry point without tools."""
    return inputs.native_tools and inputs.entry != "minimal"


def select_tool_definitions(
    definitions: tuple[ToolDefinition, ...], names: tuple[str, ...] | None
) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
    """The definitions a call asks for, in its order, and the names nobody has defined."""
    if names is None:
        return definitions, ()
    known = {definition.name: definition for definition in definitions}
    asked = dict.fromkeys(names)
    unknown = tuple(
        [f"The call names the tool {name}, which has no definition." for name in asked if name not in known]
    )
    return tuple([known[name] for name in asked if name in known]), unknown
