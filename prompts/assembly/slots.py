"""What changes per call, and how a stored build is filled with it: nothing is assembled here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from prompts.assembly.inputs import EMPTY_OBJECT, JsonObject
from prompts.assembly.segments import Segment


@dataclass(frozen=True)
class Step:
    title: str
    is_done: bool = False


@dataclass(frozen=True)
class Task:
    """The task a call is bound to."""

    number: int
    title: str
    description: str = ""
    status: str = ""
    steps: tuple[Step, ...] = ()


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
class Slots:
    """The facts of one call; time carries its own offset, for a zone's rules lie on disk."""

    now: datetime | None = None
    timezone: str = ""
    zone: str = ""
    host: JsonObject = field(default_factory=lambda: EMPTY_OBJECT)
    sandbox: JsonObject = field(default_factory=lambda: EMPTY_OBJECT)
    session: Session | None = None
    task: Task | None = None
    is_background: bool = False
    previous_error: PreviousError | None = None
    tools: tuple[str, ...] | None = None
    append: str = ""
    replace: str = ""
    messages: tuple[Message, ...] = ()


# Gets the slots and what was given at build time; None keeps the text that was built, "" leaves the part out.
SlotRenderer = Callable[[Slots, Mapping[str, Any]], str | None]
SLOT_RENDERERS: dict[str, SlotRenderer] = {}
# What a slot of this kind says takes the place of everything before it.
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
    """Literal text, or the built text of one slot with its renderer and what that needs."""

    text: str
    lead: str
    render: SlotRenderer | None = None
    given: Mapping[str, Any] = EMPTY_OBJECT
    is_replacing: bool = False


def build_slot_spans(segments: Sequence[Segment]) -> tuple[SlotSpan, ...]:
    """Segments with everything between two slots joined; made once per stored build, filled many times."""
    stretches: list[SlotSpan] = []
    literal: list[str] = []
    lead = place = 0
    while place < len(segments):
        first = segments[place]
        run = [segment.text for segment in segments[place : place + first.span]]
        place += first.span
        if first.slot:
            stretches += join_slot_span(literal, lead)
            [built] = join_slot_span(run, first.lead)
            renderer, is_replacing = SLOT_RENDERERS[first.slot], first.slot.endswith(REPLACE_SUFFIX)
            stretches.append(SlotSpan(*built[:2], renderer, first.given or EMPTY_OBJECT, is_replacing))
            literal = []
        else:
            lead = lead if literal else first.lead
            literal += run
    return (*stretches, *join_slot_span(literal, lead))


def join_slot_span(texts: list[str], lead: int) -> list[SlotSpan]:
    """The texts in one, with the separator they begin with; none of none."""
    whole = "".join(texts)
    return [SlotSpan(whole, whole[:lead])] if texts else []


def fill_spans(stretches: Iterable[SlotSpan], slots: Slots) -> str:
    """The text of one call: built words, with the slots rendered for it."""
    out: list[str] = []
    for text, lead, render, given, is_replacing in stretches:
        said = None if render is None else render(slots, given)
        if said is None:
            out.append(text if out else text[len(lead) :])
        elif said:
            if is_replacing:
                out.clear()
            out.append(lead + said if out else said)
    return "".join(out)


def fill_segments(segments: Sequence[Segment], slots: Slots) -> tuple[Segment, ...]:
    """The same as `fill`, segment by segment, for those who ask where each line came from."""
    out: list[Segment] = []
    place = 0
    while place < len(segments):
        first = segments[place]
        run = list(segments[place : place + first.span])
        place += first.span
        said = SLOT_RENDERERS[first.slot](slots, first.given or EMPTY_OBJECT) if first.slot else None
        if said == "":
            continue
        if said is not None:
            if first.slot.endswith(REPLACE_SUFFIX):
                out.clear()
            run = [first._replace(text=first.text[: first.lead] + said, span=1)]
        if not out and first.lead:
            run[0] = run[0]._replace(text=run[0].text[first.lead :], lead=0)
        out += run
    return tuple(out)
