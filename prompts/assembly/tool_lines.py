"""Lines that follow the active tools: built for the agent's own, said anew when a call brings others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prompts.assembly.frames import Frame, bare
from prompts.assembly.inputs import PromptInputs, Tool
from prompts.assembly.layout import Part
from prompts.assembly.sections import listed, unled
from prompts.assembly.segments import OURS, Pieces
from prompts.assembly.slots import Slots, slot
from prompts.assembly.text import on_one_line, single_line
from prompts.assembly.tool_rules import Guidelines

Own = Mapping[str, Sequence[str]]


def own_guidelines(inputs: PromptInputs) -> Own:
    """What each active tool asks for itself, one line each."""
    return {
        tool.name: [on_one_line(line) for line in tool.guidelines if line and not line.isspace()]
        for tool in inputs.tools
        if tool.guidelines and tool.use == "active"
    }


def guideline_pieces(guidelines: Guidelines, inputs: PromptInputs) -> Pieces:
    """A bullet for each guideline, with the tool that asked for it."""
    origins = {tool.name: tool.origin for tool in inputs.tools if tool.use == "active"}
    told = guidelines.told(origins, own_guidelines(inputs))
    return unled([(f"\n- {line}", origins.get(name, OURS)) for line, name in told.items()])


def guideline_words(guidelines: Guidelines, names: Iterable[str], own: Own) -> str:
    """The same list for the tools of one call."""
    return "\n".join([f"- {line}" for line in guidelines.told(names, own)])


def given_guidelines(inputs: PromptInputs) -> Mapping[str, Any]:
    """Kept with a build, so that a call with other tools can be answered without the records."""
    return {"own": own_guidelines(inputs)}


def tool_pieces(builtin: Mapping[str, str], inputs: PromptInputs) -> Pieces:
    """A line for each active tool."""
    snippets = own_snippets(inputs)
    return listed([(tool_line(tool.name, snippets, builtin), tool.origin) for tool in inputs.active_tools()])


def tool_words(builtin: Mapping[str, str], names: Iterable[str], snippets: Mapping[str, str]) -> str:
    """The same list for the tools of one call."""
    return "\n".join([tool_line(name, snippets, builtin) for name in dict.fromkeys(names)])


def tool_line(name: str, snippets: Mapping[str, str], builtin: Mapping[str, str]) -> str:
    """The tool's own snippet, else what everybody knows about it, else its name once more."""
    said = on_one_line(name)
    return f"- {said}: {single_line(snippets.get(name, '')) or builtin.get(name) or said}"


def own_snippets(inputs: PromptInputs) -> Mapping[str, str]:
    return {tool.name: tool.snippet for tool in inputs.active_tools() if tool.snippet}


def given_snippets(inputs: PromptInputs) -> Mapping[str, Any]:
    """Kept with a build, as with the guidelines."""
    return {"snippets": own_snippets(inputs)}


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
