"""Lines that follow the active tools: built for the agent's own, said anew when a call brings others."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prompts.assembly.inputs import PromptInputs
from prompts.assembly.sections import listed, unled
from prompts.assembly.segments import OURS, Pieces
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
