"""The only assembler: one loop over a layout's parts; nothing is appended after it returns."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from prompts.assembly.budget import Assembled, cut_pieces, fit
from prompts.assembly.frames import whole
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, Part
from prompts.assembly.loss import lost, lost_slots
from prompts.assembly.normal import normal, refuse_unwritable
from prompts.assembly.pieces import OURS, Pieces, Segment
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
    report = Report(tuple(made.parts), problems, lost(layout, inputs), ends)
    return Prompt(layout.name, tuple(made.segments), text, report, tool_definitions(inputs))


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
        place, text = placed(part, body, given, part.lead if segments else "")
        parts.append(new(PartReport, (part.name, len(text), cut, "")))
        segments += place
        texts.append(text)
        volatilities.append(part.volatility)
    return Assembled(segments, parts, texts, volatilities)


def placed(
    part: Part, body: Pieces, given: Mapping[str, Any] | None, lead: str
) -> tuple[list[Segment], str]:
    """A body in its frame as segments, and their text."""
    around, name, volatility = part.around, part.name, part.volatility
    if around is not part.frame:
        body = part.frame(body)
    inside = whole(body)
    if around.is_closed_by(inside):
        body = around.kept_inside(body)
        inside = whole(body)
    if around.opening and not part.slot:
        made = [part.led if lead else part.before]
    else:
        made = [first(part, body, given, lead)]
        body = body if around.opening else body[1:]
    # Runs for every piece, and is twice as quick as the constructor that looks for defaults.
    made += [new(Segment, (name, text, origin, volatility, 0, "", None, 1)) for text, origin in body]
    if around.ending:
        made.append(part.after)
    return made, f"{lead}{around.opening}{inside}{around.ending}"


def first(part: Part, body: Pieces, given: Mapping[str, Any] | None, lead: str) -> Segment:
    """The segment that carries the separator and, if a call may replace the whole part, its slot."""
    around = part.around
    text, origin = (around.opening, OURS) if around.opening else body[0]
    span = len(body) + bool(around.opening) + bool(around.ending) if part.slot else 1
    return new(Segment, (part.name, lead + text, origin, part.volatility, len(lead), part.slot, given, span))


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
