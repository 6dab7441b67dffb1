"""Tools that call an agent: derive the empty fields of such a tool from the agent's prompt."""

import re
from dataclasses import replace

from personas.models import Agent
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import ToolInput
from prompts.assembly.text import collapse_whitespace
from prompts.assembly.tool_signatures import parse_context_signature, parse_tool_signature
from prompts.models import PromptSettings

MAX_DESCRIPTION_LENGTH = 300
UNKNOWN_RESULT = ":any"
# The line of a mission that states the type of the result: `Return format: {count :int}`.
RETURN_FORMAT = re.compile(r"^[ \t]*Return format:[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)
SENTENCE = re.compile(r".+?[.!?](?=\s|$)")
# The parameters of an agent as a tool: it is called with one text.
PARAMETERS = {
    "type": "object",
    "properties": {"prompt": {"type": "string"}},
    "required": ["prompt"],
}


def complete_agent_tool(tool: ToolInput, agent: Agent, settings: PromptSettings | None) -> ToolInput:
    """Return the tool with a description, parameters and a signature.

    Fields that the tool's record has are kept. `settings` are the agent's own settings.
    """
    prompt = get_agent_prompt(agent, settings.mission if settings else "")
    changes: dict[str, object] = {}
    if not tool.description.strip() and not tool.snippet.strip():
        changes["description"] = agent.description.strip() or get_first_sentence(prompt)
    if tool.parameters is None and not tool.signature.strip():
        # Only prompts in the ptc layout contain the data signature, and with it the result type.
        data_signature = settings.signature if settings and agent.layout == "ptc" else ""
        result = find_result_type(prompt, data_signature)
        changes["signature"] = f"{tool.name}(prompt :string) -> {result}"
    if tool.parameters is None:
        changes["parameters"] = PARAMETERS
    return replace(tool, **changes)  # type: ignore[arg-type]  # the values have the types of these fields


def get_agent_prompt(agent: Agent, mission: str) -> str:
    """Return the text that says what the agent does: in the ptc layout the mission replaces instructions."""
    texts = (mission, agent.instructions) if agent.layout == "ptc" else (agent.instructions, mission)
    return next((text for text in texts if text.strip()), "")


def get_first_sentence(text: str) -> str:
    """Return the first sentence of a text, cut at MAX_DESCRIPTION_LENGTH. Markdown headings are skipped."""
    lines = [line.strip() for line in text.strip().splitlines()]
    while lines and (not lines[0] or lines[0].startswith("#")):
        lines.pop(0)
    paragraph = lines[: lines.index("")] if "" in lines else lines
    line = collapse_whitespace(" ".join(paragraph))
    match = SENTENCE.match(line)
    sentence = match.group() if match else line
    is_long = len(sentence) > MAX_DESCRIPTION_LENGTH
    return f"{sentence[: MAX_DESCRIPTION_LENGTH - 1].rstrip()}…" if is_long else sentence


def find_result_type(text: str, data_signature: str = "") -> str:
    """Return the type in the last line “Return format: …” that parses.

    Without such a line, return the result type of the signature of the data, or else `:any`.
    """
    for result in reversed(RETURN_FORMAT.findall(text)):
        try:
            return parse_tool_signature(f"() -> {result.strip()}", "signature").returns
        except AssemblyError:
            continue
    try:
        returns = parse_context_signature(data_signature, "signature").returns
    except AssemblyError:
        # The signature is empty, or a draft that is not valid yet.
        returns = ""
    return returns or UNKNOWN_RESULT
