"""Layouts as data: an ordered tuple of parts, each with a section builder and a frame."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from prompts.assembly.frames import Frame, leave_unframed
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.part_segments import PartPlacer, build_part_placer
from prompts.assembly.report import OmissionReason, PartReport
from prompts.assembly.segments import RELEASE, Origin, TextChunk, TextChunks

SectionBuilder = Callable[[PromptInputs], TextChunks]
SlotDataBuilder = Callable[[PromptInputs], Mapping[str, Any] | None]
ChunkShortener = Callable[[TextChunks, int], tuple[TextChunks, int]]
# The origin of placeholders, which mark the places where a call may insert text.
SLOT_ORIGIN = Origin("slot")


@dataclass(frozen=True)
class LayoutPart:
    """One part of a prompt.

    `section` builds the body; if the body is empty, the part is omitted. `frame` adds the text around the
    body. A part with a `slot` can be rendered again for each call. `slot_data` returns the data that the
    slot's renderer needs, which is stored with the build; if it returns None, the part is omitted. `shorten`
    replaces the default truncation of the body, for example to keep list entries or tags complete.
    """

    name: str
    section: SectionBuilder
    frame: Frame = leave_unframed
    uses: tuple[str, ...] = ()
    volatility: str = RELEASE
    lead: str = "\n\n"
    omission_reason: OmissionReason = OmissionReason.EMPTY
    slot: str = ""
    slot_data: SlotDataBuilder | None = None
    is_cuttable: bool = False
    shorten: ChunkShortener | None = None

    # Derived from the fields above, computed once because every build uses them.
    place: PartPlacer = field(init=False, repr=False, compare=False)
    absent: PartReport = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place = build_part_placer(self.name, self.volatility, self.frame, self.lead, self.slot)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "absent", PartReport(self.name, omitted=self.omission_reason))


@dataclass(frozen=True)
class Layout:
    """A prompt format: its parts in order, and the slots that it supports."""

    name: str
    parts: tuple[LayoutPart, ...]
    summary: str = ""
    problems: Callable[[PromptInputs], Sequence[str]] = field(default=lambda _: ())
    slots: tuple[str, ...] = ()
    # Returns inputs that the layout supports but omits because of other inputs. They are reported as lost.
    displaced: Callable[[PromptInputs], Sequence[str]] = field(default=lambda _: ())

    @cached_property
    def used(self) -> frozenset[str]:
        """The names of all inputs that the parts use."""
        return frozenset([name for part in self.parts for name in part.uses])


def get_empty_slot_data(_: PromptInputs) -> Mapping[str, Any]:
    """Return empty slot data, for renderers that need only the slots of the call."""
    return {}


def get_timezone_slot_data(inputs: PromptInputs) -> Mapping[str, Any]:
    """Return the user's time zone, which applies to calls that name none."""
    return {"timezone": inputs.user.timezone} if inputs.user and inputs.user.timezone else {}


def build_call_part(
    name: str,
    slot: str,
    volatility: str,
    slot_data: SlotDataBuilder = get_empty_slot_data,
    *,
    placeholder: str = "",
    **more: Any,
) -> LayoutPart:
    """Build a part whose text comes only from the slots of a call; stored builds contain a placeholder."""
    body = (TextChunk(f"⟦{placeholder or name}⟧"),)
    return LayoutPart(name, lambda _: body, volatility=volatility, slot=slot, slot_data=slot_data, **more)


@cache
def build_slot_placeholder(name: str) -> TextChunks:
    """Build a placeholder as the body of a part that has no text until a call fills its slot."""
    return (TextChunk(f"⟦{name}⟧", SLOT_ORIGIN),)


def frame_unless_placeholder(frame: Frame) -> Frame:
    """Return a frame that leaves the placeholder of a slot unchanged and applies `frame` to other bodies."""
    return lambda body: body if body[0][1] is SLOT_ORIGIN else frame(body)
