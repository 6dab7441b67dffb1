"""Apply the slots of a call that change the inputs of a prompt, such as its data, limits and tools.

Other slots are filled into a stored build. These need a new build, from the inputs of the version.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from prompts.assembly.data_inventory import is_hidden_field
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import Data, JsonObject, Limits, PromptInputs, Text, ToolInput
from prompts.assembly.segments import SESSION, TURN, Origin
from prompts.assembly.slots import CallLimits, CallTool, Slots

CALL_ORIGIN = Origin("call")
INPUT_SLOTS = (
    *("data", "signature", "hidden", "mission", "limits", "working_directory", "directories"),
    *("mode", "entry", "native_tools", "tool_definitions"),
)
# Inputs that say where the call runs, which stays the same in a session. Others can differ in each turn.
SESSION_INPUTS = frozenset({"working_directory", "directories"})
PLACEHOLDER_MARK = "{{"
DEFAULT_VALUES = {field.name: field.default for field in fields(Slots) if field.name in INPUT_SLOTS}


def changes_inputs(slots: Slots) -> bool:
    """Tell whether the call sets slots that need a new build."""
    return any(getattr(slots, name) != default for name, default in DEFAULT_VALUES.items())


def apply_call_inputs(inputs: PromptInputs, slots: Slots) -> PromptInputs:
    """Return the inputs with the values of the call in place of the stored ones."""
    return replace(
        inputs,
        data=get_call_data(inputs.data, slots),
        mission=Text(slots.mission, CALL_ORIGIN) if slots.mission else inputs.mission,
        limits=get_call_limits(inputs.limits, slots.limits),
        working_directory=slots.working_directory or inputs.working_directory,
        directories=inputs.directories if slots.directories is None else slots.directories,
        mode=slots.mode or inputs.mode,
        entry=slots.entry or inputs.entry,
        native_tools=inputs.native_tools if slots.native_tools is None else slots.native_tools,
        tools=(*get_call_tools(inputs.tools, slots.tool_definitions),),
    )


def get_call_volatilities(inputs: PromptInputs, slots: Slots) -> dict[str, str]:
    """Return the inputs that the call sets, with the volatility of parts that use them.

    Inputs that change the text only in part, such as limits, are not listed.
    """
    changed = [name for name in SESSION_INPUTS if getattr(slots, name) != DEFAULT_VALUES[name]]
    volatilities = dict.fromkeys(changed, SESSION)
    templates = [text.text for text in (inputs.mission, inputs.instructions) if text is not None]
    if slots.data or slots.signature or slots.hidden:
        volatilities["data"] = TURN
        if any(PLACEHOLDER_MARK in text for text in templates):
            volatilities["mission"] = TURN
    return volatilities | ({"mission": TURN} if slots.mission else {})


def get_call_data(stored: Data | None, slots: Slots) -> Data | None:
    """Return the data of the call.

    Values of the call replace all stored values: those are samples, and a sample next to a real value would
    claim that the program can read it. The stored signature and hidden fields still apply.
    """
    if not (slots.data or slots.signature or slots.hidden):
        return stored
    stored = stored or Data()
    return replace(
        stored,
        values=parse_json_object(slots.data, "data") if slots.data else stored.values,
        signature=slots.signature or stored.signature,
        hidden=tuple(dict.fromkeys((*stored.hidden, *slots.hidden))),
        origin=CALL_ORIGIN if slots.data else stored.origin,
    )


def get_call_limits(stored: Limits, call: CallLimits) -> Limits:
    values: dict[str, Any] = {field.name: getattr(call, field.name) for field in fields(call)}
    values = {name: value for name, value in values.items() if value is not None}
    return replace(stored, **values | {"parts": {**stored.parts, **call.parts}})


def get_call_tools(stored: tuple[ToolInput, ...], defined: tuple[CallTool, ...]) -> list[ToolInput]:
    """Return the stored tools, with a tool of the call in place of each stored tool of the same name."""
    tools = {tool.name: tool for tool in stored}
    return [*(tools | {tool.name: build_call_tool(tool) for tool in defined}).values()]


def build_call_tool(tool: CallTool) -> ToolInput:
    return ToolInput(
        tool.name,
        tool.description,
        tool.snippet,
        tool.guidelines,
        parse_json_object(tool.parameters, f"tool_definitions.{tool.name}") if tool.parameters else None,
        tool.signature,
        origin=CALL_ORIGIN,
    )


def parse_json_object(text: str, path: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise AssemblyError(path, "must be the JSON text of an object") from None
    if not isinstance(value, Mapping):
        raise AssemblyError(path, "must be the JSON text of an object")
    return value


def mask_hidden_fields(value: Any, hidden: frozenset[str]) -> Any:
    """Replace the values of hidden fields by null, at any depth.

    Prompts never show these values, so a replay without them gives the same text.
    """
    if isinstance(value, Mapping):
        return {
            name: None if is_hidden_field(name, hidden) else mask_hidden_fields(item, hidden)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_hidden_fields(item, hidden) for item in value]
    return value
