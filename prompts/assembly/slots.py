"""Slots: the values that change per call, and filling a stored build with them.

Fields and docstrings of the dataclasses are published in the JSON schema.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from prompts.assembly.inputs import EMPTY_OBJECT, JsonObject
from prompts.assembly.segments import CALL_VOLATILITIES, TURN, Segment, get_call_volatility


@dataclass(frozen=True)
class StepInput:
    title: str
    is_done: bool = False


@dataclass(frozen=True)
class TaskInput:
    """The task a call is bound to. The number 0 stands for a task without a number."""

    number: int
    title: str
    description: str = ""
    status: str = ""
    steps: tuple[StepInput, ...] = ()


@dataclass(frozen=True)
class Session:
    """The conversation a call belongs to; sub-agents have none."""

    id: str = ""
    plan_path: str = ""


@dataclass(frozen=True)
class PreviousError:
    """Why the last generated program failed."""

    error: str
    message: str = ""
    context: str = ""


@dataclass(frozen=True)
class Message:
    """A message that travels beside the prompt."""

    text: str
    role: Literal["user", "assistant"] = "user"


@dataclass(frozen=True)
class CallTool:
    """A tool that one call defines. `parameters` is JSON text, because storage loses the order of keys."""

    name: str
    description: str = ""
    snippet: str = ""
    guidelines: tuple[str, ...] = ()
    parameters: str = ""
    signature: str = ""


@dataclass(frozen=True)
class CallLimits:
    """Limits for one call; what is absent is taken from the stored limits."""

    total: int | None = None
    parts: Mapping[str, int] = field(default_factory=dict)
    per_file: int | None = None
    all_files: int | None = None
    list_sample: int | None = None
    string_truncate: int | None = None
    omit_reference: bool | None = None


@dataclass(frozen=True)
class Slots:
    """The facts of one call; time carries its own offset, for a zone's rules lie on disk."""

    now: datetime | None = None
    timezone: str = ""
    zone: str = ""
    host: JsonObject = field(default_factory=lambda: EMPTY_OBJECT)
    sandbox: JsonObject = field(default_factory=lambda: EMPTY_OBJECT)
    session: Session | None = None
    task: TaskInput | None = None
    is_background: bool = False
    previous_error: PreviousError | None = None
    tools: tuple[str, ...] | None = None
    append: str = ""
    replace: str = ""
    messages: tuple[Message, ...] = ()
    # The fields below change the inputs of the prompt for this call: see call_inputs. `data` is the JSON text
    # of an object, because storage loses the order of keys.
    data: str = ""
    signature: str = ""
    hidden: tuple[str, ...] = ()
    mission: str = ""
    limits: CallLimits = CallLimits()
    working_directory: str = ""
    # None keeps the directories of the agent; an empty list states that there are none.
    directories: tuple[str, ...] | None = None
    mode: Literal["agent", "single_turn"] | None = None
    entry: Literal["full", "simple", "minimal"] | None = None
    native_tools: bool | None = None
    tool_definitions: tuple[CallTool, ...] = ()


# Takes the slots and the slot data of the build, and returns the text. None keeps the built text, and ""
# omits the part.
SlotRenderer = Callable[[Slots, Mapping[str, Any]], str | None]
SLOT_RENDERERS: dict[str, SlotRenderer] = {}
# The text of a slot with this suffix replaces everything before it.
REPLACE_SUFFIX = ".replace"


def register_slot(name: str) -> Callable[[SlotRenderer], SlotRenderer]:
    """Register the renderer of a slot under the name that stored segments carry."""

    def register(renderer: SlotRenderer) -> SlotRenderer:
        if name in SLOT_RENDERERS:
            raise ValueError(f"Two renderers for the slot {name}.")
        SLOT_RENDERERS[name] = renderer
        return renderer

    return register


class SlotSpan(NamedTuple):
    """Literal text, or the built text of one slot with its renderer and slot data."""

    text: str
    lead: str
    render: SlotRenderer | None = None
    slot_data: Mapping[str, Any] = EMPTY_OBJECT
    is_replacing: bool = False


def build_slot_spans(segments: Sequence[Segment]) -> tuple[SlotSpan, ...]:
    """Join the segments between two slots; done once per stored build, which is then filled many times."""
    spans: list[SlotSpan] = []
    literal: list[str] = []
    lead = index = 0
    while index < len(segments):
        first = segments[index]
        run = [segment.text for segment in segments[index : index + first.span]]
        index += first.span
        if first.slot:
            spans += join_slot_span(literal, lead)
            [built] = join_slot_span(run, first.lead)
            renderer, is_replacing = SLOT_RENDERERS[first.slot], first.slot.endswith(REPLACE_SUFFIX)
            spans.append(SlotSpan(*built[:2], renderer, first.given or EMPTY_OBJECT, is_replacing))
            literal = []
        else:
            lead = lead if literal else first.lead
            literal += run
    return (*spans, *join_slot_span(literal, lead))


def join_slot_span(texts: list[str], lead: int) -> list[SlotSpan]:
    """Join texts to one span with their leading separator; an empty list gives no span."""
    text = "".join(texts)
    return [SlotSpan(text, text[:lead])] if texts else []


def fill_spans(spans: Iterable[SlotSpan], slots: Slots) -> str:
    """Return the text of one call: the built text with its slots rendered."""
    out: list[str] = []
    for text, lead, render, slot_data, is_replacing in spans:
        rendered = None if render is None else render(slots, slot_data)
        if rendered is None:
            out.append(text if out else text[len(lead) :])
        elif rendered:
            if is_replacing:
                out.clear()
            out.append(lead + rendered if out else rendered)
    return "".join(out)


def is_omitted_by_call(slot: str, slot_data: Mapping[str, Any], volatility: str) -> bool:
    """Tell whether an empty text of the slot is due to the call: other calls have the built text there."""
    return volatility not in CALL_VOLATILITIES and SLOT_RENDERERS[slot](Slots(), slot_data) is None


def fill_segments(segments: Sequence[Segment], slots: Slots) -> tuple[Segment, ...]:
    """Fill the slots like `fill_spans`, but keep the segments and thereby the origin of each line.

    Text of the call has the volatility of a call. If the call omits a part, the segment that follows has it:
    no cached text continues there.
    """
    out: list[Segment] = []
    index, is_changed = 0, False
    while index < len(segments):
        first = segments[index]
        run = list(segments[index : index + first.span])
        index += first.span
        rendered = SLOT_RENDERERS[first.slot](slots, first.given or EMPTY_OBJECT) if first.slot else None
        if rendered == "":
            is_changed |= is_omitted_by_call(first.slot, first.given or EMPTY_OBJECT, first.volatility)
            continue
        if rendered is not None:
            if first.slot.endswith(REPLACE_SUFFIX):
                out.clear()
            volatility = get_call_volatility(first.volatility)
            run = [first._replace(text=first.text[: first.lead] + rendered, volatility=volatility, span=1)]
        elif is_changed:
            run[0] = run[0]._replace(volatility=TURN)
        is_changed = False
        if not out and first.lead:
            run[0] = run[0]._replace(text=run[0].text[first.lead :], lead=0)
        out += run
    return tuple(out)
