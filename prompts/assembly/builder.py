"""The only assembler: one loop over a layout's parts; nothing is appended after it returns."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from prompts.assembly.budget import Assembled, cut_pieces, fit
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.loss import lost, lost_slots
from prompts.assembly.normal import normal, refuse_unwritable
from prompts.assembly.pieces import Segment
from prompts.assembly.report import PartReport, Report, boundaries
from prompts.assembly.slots import Message, Slots, filled
from prompts.assembly.surface import ToolDefinition, of_call, tool_definitions

new = tuple.__new__


class Prompt(NamedTuple):
    """A build: segments whose join is the text, and what is known about them."""

    layout: str
    segments: tuple[Segment, ...]
    text: str
    report: Report
    tools: tuple[ToolDefinition, ...] = ()
    messages: tuple[Message, ...] = ()


def build(layout: Layout, inputs: PromptInputs) -> Prompt:
    """Assemble; slots stand in with the words they were built with."""
    limits = inputs.limits
    made = assemble(layout, inputs, limits.parts)
    text = "".join(made.texts)
    if "\r" in text:
        return build(layout, normal(inputs))
    refuse_unwritable(made.texts, made.segments)
    problems = tuple(layout.problems(inputs))
    if limits.total is not None and len(text) > limits.total:
        made, over = fit(layout, limits.parts, limits.total, partial(assemble, layout, inputs))
        text, problems = "".join(made.texts), problems + over
    ends = boundaries(zip(made.volatilities, map(len, made.texts), strict=True))
    report = new(Report, (tuple(made.parts), problems, lost(layout, inputs), ends))
    tools = tool_definitions(inputs)
    return new(Prompt, (layout.name, tuple(made.segments), text, report, tools, ()))


def assemble(layout: Layout, inputs: PromptInputs, limits: Mapping[str, int]) -> Assembled:
    """Every part in its order; an empty one leaves nothing behind."""
    segments: list[Segment] = []
    parts: list[PartReport] = []
    texts: list[str] = []
    volatilities: list[str] = []
    for part in layout.parts:
        body = part.section(inputs)
        given = part.given(inputs) if body and part.given is not None else None
        if not body or (part.slot and given is None):
            parts.append(part.absent)
            continue
        cut = 0
        if part.name in limits:
            body, cut = (part.shorten or cut_pieces)(body, limits[part.name])
        text = part.place(segments, body, given)
        parts.append(new(PartReport, (part.name, len(text), cut, "")))
        texts.append(text)
        volatilities.append(part.volatility)
    return Assembled(segments, parts, texts, volatilities)


def render(layout: Layout, inputs: PromptInputs, slots: Slots) -> Prompt:
    """Build and fill in one go: the same bytes as filling a stored build."""
    built = build(layout, inputs)
    segments = filled(built.segments, slots)
    texts = [segment.text for segment in segments]
    refuse_unwritable(texts, segments)
    unplaced = built.report.lost + lost_slots(layout, slots)
    tools, undefined = of_call(built.tools, slots.tools)
    problems = built.report.problems + undefined
    ends = boundaries([(segment.volatility, len(segment.text)) for segment in segments])
    report = built.report._replace(boundaries=ends, lost=unplaced, problems=problems)
    text = "".join(texts)
    return built._replace(segments=segments, text=text, report=report, tools=tools, messages=slots.messages)
