"""Build a prompt: assemble the parts of a layout in order and, for a call, fill the slots."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from prompts.assembly.budget import AssembledParts, cut_chunks, fit_to_budget
from prompts.assembly.call_inputs import apply_call_inputs, changes_inputs, get_call_volatilities
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.normalize import check_encodable_texts, normalize_inputs
from prompts.assembly.report import (
    VOLATILITY_RANKS,
    AssemblyReport,
    OmissionReason,
    PartReport,
    find_cache_boundaries,
)
from prompts.assembly.segments import TURN, Segment, get_texts_by_section
from prompts.assembly.skill_rules import exclude_invalid_names
from prompts.assembly.slots import Message, Slots, fill_segments
from prompts.assembly.tool_definitions import (
    ToolDefinition,
    can_offer_definitions,
    list_tool_definitions,
    select_tool_definitions,
)
from prompts.assembly.unplaced_inputs import list_unplaced_inputs, list_unplaced_slots

new_tuple = tuple.__new__


class AssembledPrompt(NamedTuple):
    """A built prompt: its text, the segments that make up the text, and the build report."""

    layout: str
    segments: tuple[Segment, ...]
    text: str
    report: AssemblyReport
    tools: tuple[ToolDefinition, ...] = ()
    messages: tuple[Message, ...] = ()


def build_prompt(layout: Layout, inputs: PromptInputs) -> AssembledPrompt:
    """Assemble a prompt without filling its slots: each slot contains its placeholder or default text."""
    limits = inputs.limits
    listed_inputs, rejected_skills = exclude_invalid_names(inputs)
    assembled = assemble_parts(layout, listed_inputs, limits.parts)
    text = "".join(assembled.texts)
    if "\r" in text:
        return build_prompt(layout, normalize_inputs(inputs))
    inputs = listed_inputs
    check_encodable_texts(assembled.texts, assembled.segments)
    problems = (*(rejected_skills if "skills" in layout.used else ()), *layout.problems(inputs))
    if limits.total is not None and len(text) > limits.total:
        assembled, over = fit_to_budget(
            layout, limits.parts, limits.total, partial(assemble_parts, layout, inputs)
        )
        text, problems = "".join(assembled.texts), problems + over
    report = (
        tuple(assembled.parts),
        problems,
        list_unplaced_inputs(layout, inputs),
        find_cache_boundaries(assembled.starts),
    )
    tools = list_tool_definitions(inputs) if can_offer_definitions(inputs) else ()
    return new_tuple(
        AssembledPrompt,
        (layout.name, tuple(assembled.segments), text, new_tuple(AssemblyReport, report), tools, ()),
    )


def assemble_parts(layout: Layout, inputs: PromptInputs, limits: Mapping[str, int]) -> AssembledParts:
    """Assemble every part in order; an empty part adds no text and no separator."""
    segments: list[Segment] = []
    parts: list[PartReport] = []
    texts: list[str] = []
    starts: list[tuple[str, int]] = []
    volatility, size = "", 0
    for part in layout.parts:
        body = part.section(inputs)
        slot_data = part.slot_data(inputs) if part.slot_data and body else None
        if not body or (slot_data is None and part.slot):
            parts.append(part.absent)
            continue
        cut = 0
        if part.name in limits:
            body, cut = (part.shorten or cut_chunks)(body, limits[part.name])
        text = part.place(segments, body, slot_data)
        parts.append(new_tuple(PartReport, (part.name, len(text), cut, None)))
        texts.append(text)
        if part.volatility != volatility:
            volatility = part.volatility
            starts.append((volatility, size))
        size += len(text)
    return new_tuple(AssembledParts, (segments, parts, texts, starts))


def build_changed_prompt(layout: Layout, inputs: PromptInputs, slots: Slots) -> AssembledPrompt:
    """Build a prompt with the inputs that the call changes, without filling its slots.

    The parts that use these inputs, or whose text differs, have the volatility of a call.
    """
    changed = apply_call_inputs(inputs, slots)
    stored, built = build_prompt(layout, inputs), build_prompt(layout, changed)
    volatilities = get_call_volatilities(changed, slots)
    before, after = get_texts_by_section(stored.segments), get_texts_by_section(built.segments)
    levels: dict[str, str] = {}
    for part in layout.parts:
        used = [volatilities[name] for name in part.uses if name in volatilities]
        if not used and before.get(part.name, "").strip() != after.get(part.name, "").strip():
            used = [TURN]
        levels[part.name] = max([part.volatility, *used], key=VOLATILITY_RANKS.__getitem__)
    segments = [segment._replace(volatility=levels[segment.section]) for segment in built.segments]
    return built._replace(segments=tuple(segments))


def build_filled_prompt(layout: Layout, inputs: PromptInputs, slots: Slots) -> AssembledPrompt:
    """Build a prompt and fill its slots.

    Filling the stored build with the same slots gives the same text, unless the slots change the inputs.
    """
    if changes_inputs(slots):
        built, inputs = build_changed_prompt(layout, inputs, slots), apply_call_inputs(inputs, slots)
    else:
        built = build_prompt(layout, inputs)
    segments = fill_segments(built.segments, slots)
    texts = [segment.text for segment in segments]
    check_encodable_texts(texts, segments)
    unplaced = built.report.lost + list_unplaced_slots(layout, slots)
    tools, undefined = select_tool_definitions(list_tool_definitions(inputs), slots.tools)
    problems = built.report.problems + undefined
    levels, offsets = [segment.volatility for segment in segments], accumulate(map(len, texts), initial=0)
    ends = find_cache_boundaries(zip(levels, offsets, strict=False))
    parts = build_filled_part_reports(built.report.parts, segments)
    report = AssemblyReport(parts, problems, unplaced, ends)
    offered = tools if can_offer_definitions(inputs) else ()
    return AssembledPrompt(layout.name, segments, "".join(texts), report, offered, slots.messages)


def build_filled_part_reports(
    parts: Iterable[PartReport], segments: Iterable[Segment]
) -> tuple[PartReport, ...]:
    """Return the part reports with the sizes they have after the slots were filled."""
    sizes: dict[str, int] = {}
    for segment in segments:
        sizes[segment.section] = sizes.get(segment.section, 0) + len(segment.text)
    return tuple(
        [
            part._replace(
                kept=sizes.get(part.name, 0),
                omitted=part.omitted or (OmissionReason.NOT_IN_CALL if part.name not in sizes else None),
            )
            for part in parts
        ]
    )
