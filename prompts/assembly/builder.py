"""The only assembler: one loop over a layout's parts; nothing is appended after it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from prompts.assembly.budget import cut_pieces, fit
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout, Part
from prompts.assembly.loss import lost, lost_slots
from prompts.assembly.normal import normal, refuse_unwritable
from prompts.assembly.pieces import Piece, Segment
from prompts.assembly.report import PartReport, Report, boundaries
from prompts.assembly.slots import Message, Slots, filled
from prompts.assembly.surface import ToolDefinition, of_call, tool_definitions

new = tuple.__new__


@dataclass(frozen=True)
class Prompt:
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
    segments, parts = assemble(layout, inputs, limits.parts)
    text = "".join([segment.text for segment in segments])
    if "\r" in text:
        return build(layout, normal(inputs))
    refuse_unwritable(text, segments)
    problems = tuple(layout.problems(inputs))
    if limits.total is not None and len(text) > limits.total:
        again = partial(assemble, layout, inputs)
        segments, parts, over = fit(layout, limits.parts, limits.total, again)
        text, problems = "".join([segment.text for segment in segments]), problems + over
    report = Report(tuple(parts), problems, lost(layout, inputs), boundaries(segments))
    return Prompt(layout.name, tuple(segments), text, report, tool_definitions(inputs))


def assemble(
    layout: Layout, inputs: PromptInputs, limits: Mapping[str, int]
) -> tuple[list[Segment], list[PartReport]]:
    """Every part in its order; an empty one leaves nothing behind."""
    segments: list[Segment] = []
    parts: list[PartReport] = []
    for part in layout.parts:
        body = part.section(inputs)
        given = part.given(inputs) if part.given is not None else None
        if not body or (part.slot and given is None):
            parts.append(PartReport(part.name, omitted=part.needs or "nothing to say"))
            continue
        cut = 0
        if part.name in limits:
            body, cut = (part.shorten or cut_pieces)(body, limits[part.name])
        place = placed(part, part.frame(body), given, is_first=not segments)
        parts.append(PartReport(part.name, kept=sum([len(segment.text) for segment in place]), cut=cut))
        segments += place
    return segments, parts


def placed(
    part: Part, pieces: Sequence[Piece], given: Mapping[str, Any] | None = None, *, is_first: bool
) -> list[Segment]:
    """Pieces as segments; the first carries the separator and, if a call may replace them, the slot."""
    name, volatility, lead = part.name, part.volatility, "" if is_first else part.lead
    # Runs for every piece, and is twice as quick as the constructor that looks for defaults.
    made = [new(Segment, (name, text, origin, volatility, 0, "", None, 1)) for text, origin in pieces]
    if lead or part.slot:
        text, origin = pieces[0]
        span = len(pieces) if part.slot else 1
        made[0] = Segment(name, lead + text, origin, volatility, len(lead), part.slot, given, span)
    return made


def render(layout: Layout, inputs: PromptInputs, slots: Slots) -> Prompt:
    """Build and fill in one go: the same bytes as filling a stored build."""
    built = build(layout, inputs)
    segments = filled(built.segments, slots)
    text = "".join([segment.text for segment in segments])
    refuse_unwritable(text, segments)
    unplaced = built.report.lost + lost_slots(layout, slots)
    tools, undefined = of_call(built.tools, slots.tools)
    problems = built.report.problems + undefined
    report = replace(built.report, boundaries=boundaries(segments), lost=unplaced, problems=problems)
    return replace(built, segments=segments, text=text, report=report, tools=tools, messages=slots.messages)
