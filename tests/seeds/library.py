"""Render prompts of a seed with the assembly library alone."""

import re
from typing import Any

from prompts.assembly.builder import build_filled_prompt
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots
from prompts.serving.render_api import convert_call_inputs
from prompts.serving.slot_values import fill_clock
from prompts.serving.warnings import get_assembly_warnings
from tests.seeds.seed import Prompt, Seed, Values

TEXTS = ("soul", "instructions", "base", "append", "mission")
NO_CHANGES: Values = {}
# The library and the API word this warning differently.
UNDEFINED_TOOL = re.compile(r"^The call names the tool (.+), which has no definition\.$")


def render_in_library(seed: Seed, agent: str = "bare", given: Values = NO_CHANGES, **call: Any) -> Prompt:
    seed.agents[agent] = {**seed.agents[agent], **given}
    inputs = build_inputs(seed, seed.agents[agent])
    slots = build_slots(seed.build_call(call))
    if slots.now is not None:
        slots = fill_clock(slots, slots.now, inputs.user.timezone if inputs.user else "")
    prompt = build_filled_prompt(LAYOUTS[seed.layout], inputs, slots)
    warnings = get_assembly_warnings(prompt.report)
    return Prompt(
        prompt.text,
        [UNDEFINED_TOOL.sub(r"The tool \1 of the call has no definition.", text) for text in warnings.text]
        + [*warnings.lost],
        [tool._asdict() for tool in prompt.tools],
        [{"role": message.role, "content": message.text} for message in prompt.messages],
    )


def build_inputs(seed: Seed, values: Values) -> PromptInputs:
    """Build the inputs from the short form of the tests."""
    data = {name: value for name, value in values.items() if value is not None}
    for name in TEXTS:
        if name in data:
            data[name] = {"text": data[name]}
    for name in ("context_files", "workspace_files"):
        if name in data:
            data[name] = [{"path": path, "text": text} for path, text in data[name].items()]
    data["responsibilities"] = [
        {"title": title, "text": text} for title, text in data.get("responsibilities", {}).items()
    ]
    data["memories"] = [{"text": text} for text in data.get("memories", ())]
    planning = [tool | {"use": "planning"} for tool in seed.list_tools(data.pop("planning_tools", ()))]
    data["tools"] = [*seed.list_tools(data.get("tools", ())), *planning]
    if formatting := data.pop("formatting", ""):
        data["channel"] = {"name": "Web", "formatting": formatting}
    return parse_dataclass(PromptInputs, data)


def build_slots(call: dict[str, Any]) -> Slots:
    """Build the slots from the body of a render request."""
    values = call | convert_call_inputs(call)
    if "task" in call:
        values["task"] = {"number": 0, **call["task"]}
    return parse_dataclass(Slots, values)
