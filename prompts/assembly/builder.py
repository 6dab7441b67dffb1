"""The only assembler: one loop over a layout's parts; nothing is appended after it returns."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from prompts.assembly.budget import Assembled, cut_pieces, fit
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.normalize import normal, refuse_unwritable
from prompts.assembly.report import PartReport, Report, boundaries
from prompts.assembly.segments import Segment
from prompts.assembly.slots import Message, Slots, filled
from prompts.assembly.tool_definitions import ToolDefinition, are_offered, of_call, tool_definitions
from prompts.assembly.unplaced_inputs import lost, lost_slots

new = tuple.__new__
UNSAID = "the call says nothing"


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
    told = tuple(made.parts), problems, lost(layout, inputs), boundaries(made.starts)
    tools = tool_definitions(inputs) if are_offered(inputs) else ()
    return new(Prompt, (layout.name, tuple(made.segments), text, new(Report, told), tools, ()))


def assemble(layout: Layout, inputs: PromptInputs, limits: Mapping[str, int]) -> Assembled:
    """Every part in its order; an empty one leaves nothing behind."""
    segments: list[Segment] = []
    parts: list[PartReport] = []
    texts: list[str] = []
    starts: list[tuple[str, int]] = []
    volatility, size = "", 0
    for part in layout.parts:
        body = part.section(inputs)
        given = part.given(inputs) if part.given and body else None
        if not body or (given is None and part.slot):
            parts.append(part.absent)
            continue
        cut = 0
        if part.name in limits:
            body, cut = (part.shorten or cut_pieces)(body, limits[part.name])
        text = part.place(segments, body, given)
        parts.append(new(PartReport, (part.name, len(text), cut, "")))
        texts.append(text)
        if part.volatility != volatility:
            volatility = part.volatility
            starts.append((volatility, size))
        size += len(text)
    return new(Assembled, (segments, parts, texts, starts))


def render(layout: Layout, inputs: PromptInputs, slots: Slots) -> Prompt:
    """Build and fill in one go: the same bytes as filling a stored build."""
    built = build(layout, inputs)
    segments = filled(built.segments, slots)
    texts = [segment.text for segment in segments]
    refuse_unwritable(texts, segments)
    unplaced = built.report.lost + lost_slots(layout, slots)
    tools, undefined = of_call(tool_definitions(inputs), slots.tools)
    problems = built.report.problems + undefined
    levels, offsets = [segment.volatility for segment in segments], accumulate(map(len, texts), initial=0)
    ends = boundaries(zip(levels, offsets, strict=False))
    parts = parts_of_call(built.report.parts, segments)
    report = Report(parts, problems, unplaced, ends)
    offered = tools if are_offered(inputs) else ()
    return Prompt(layout.name, segments, "".join(texts), report, offered, slots.messages)


def parts_of_call(parts: Iterable[PartReport], segments: Iterable[Segment]) -> tuple[PartReport, ...]:
    """The same parts with what stands of them after the call has spoken."""
    sizes: dict[str, int] = {}
    for segment in segments:
        sizes[segment.section] = sizes.get(segment.section, 0) + len(segment.text)
    return tuple(
        [
            part._replace(
                kept=sizes.get(part.name, 0), omitted=part.omitted or UNSAID * (part.name not in sizes)
            )
            for part in parts
        ]
    )
