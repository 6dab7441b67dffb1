"""Tool definitions, which are sent to the provider's API next to the prompt."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from prompts.assembly.inputs import EMPTY_OBJECT, PromptInputs

# Creates a named tuple without its constructor. This is twice as fast, and every build needs it.
new_tuple = tuple.__new__


class ToolDefinition(NamedTuple):
    """Name, description and parameter schema of one active tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]


def list_tool_definitions(inputs: PromptInputs) -> tuple[ToolDefinition, ...]:
    """List the definitions of the active tools in order; planning tools appear only in the prompt text."""
    return tuple(
        [
            new_tuple(ToolDefinition, (tool.name, tool.description, tool.parameters or EMPTY_OBJECT))
            for tool in inputs.tools
            if tool.use == "active"
        ]
    )


def can_offer_definitions(inputs: PromptInputs) -> bool:
    """Tell whether definitions are sent: only with native tools, and not for the minimal entry point."""
    return inputs.native_tools and inputs.entry != "minimal"


def select_tool_definitions(
    definitions: tuple[ToolDefinition, ...], names: tuple[str, ...] | None
) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
    """Return the definitions in the order in which a call names them, and a problem per undefined name."""
    if names is None:
        return definitions, ()
    definitions_by_name = {definition.name: definition for definition in definitions}
    requested = dict.fromkeys(names)
    unknown = tuple(
        [
            f"The call names the tool {name}, which has no definition."
            for name in requested
            if name not in definitions_by_name
        ]
    )
    return tuple([definitions_by_name[name] for name in requested if name in definitions_by_name]), unknown
