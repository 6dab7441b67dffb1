"""Parts that follow from the tools: built for the agent's own, rendered anew when a call names others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prompts.assembly.frames import Frame, bare
from prompts.assembly.inputs import PromptInputs, Tool
from prompts.assembly.layout import Part
from prompts.assembly.segments import Pieces
from prompts.assembly.slots import Slots, slot

# Tools and whether the provider takes their definitions, to words.
Told = Callable[[Sequence[Tool], bool], Pieces]


def tool_part(
    slot_name: str, told: Told, *, frame: Frame = bare, keeps: tuple[str, ...] = (), **more: Any
) -> Part:
    """A part named by the end of its slot; `keeps` are the fields of a tool that its words are made of."""

    @slot(slot_name)
    def render(slots: Slots, given: Mapping[str, Any]) -> str | None:
        if slots.tools is None:
            return None
        body = told(called(slots.tools, given["tools"]), given["native"])
        return "".join([text for text, _ in frame(body)]) if body else ""

    def given(inputs: PromptInputs) -> Mapping[str, Any]:
        tools = tools_of(inputs)
        kept = {tool.name: {key: getattr(tool, key) for key in keeps} if keeps else {} for tool in tools}
        return {"tools": kept, "native": inputs.native_tools}

    def section(inputs: PromptInputs) -> Pieces:
        return told(tools_of(inputs), inputs.native_tools)

    name = slot_name.rpartition(".")[2]
    return Part(name, section, frame, uses=("tools",), slot=slot_name, given=given, **more)


def tools_of(inputs: PromptInputs) -> Sequence[Tool]:
    """The active tools; the minimal entry point has none."""
    if inputs.entry == "minimal":
        return ()
    return [tool for tool in inputs.tools if tool.use == "active"]


def called(names: Sequence[str], kept: Mapping[str, Mapping[str, Any]]) -> list[Tool]:
    """The tools of one call, in its order and each once; a name the build does not know says nothing."""
    return [Tool(name, **kept[name]) for name in dict.fromkeys(names) if name in kept]
