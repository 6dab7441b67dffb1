"""A layout is data: an ordered tuple of parts, each a section in a frame at its place."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from prompts.assembly.frames import Frame, leave_unframed
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.part_segments import PartPlacer, build_part_placer
from prompts.assembly.report import PartReport
from prompts.assembly.segments import RELEASE, Origin, TextChunk, TextChunks

SectionBuilder = Callable[[PromptInputs], TextChunks]
SlotDataBuilder = Callable[[PromptInputs], Mapping[str, Any] | None]
ChunkShortener = Callable[[TextChunks, int], tuple[TextChunks, int]]
# Marks the name of a slot that stands where a call may put words.
SLOT_ORIGIN = Origin("slot")


@dataclass(frozen=True)
class LayoutPart:
    """One place in a prompt.

    `section` gives the words (none: the part is absent), `frame` what stands around them. A part with a
    `slot` can be rendered anew for a call: `given` keeps at build time what its renderer will need; None
    from it means that the part has no place in this prompt at all. `shorten` cuts a body whose pieces must
    stay whole or closed.
    """

    name: str
    section: SectionBuilder
    frame: Frame = leave_unframed
    uses: tuple[str, ...] = ()
    volatility: str = RELEASE
    lead: str = "\n\n"
    needs: str = ""
    slot: str = ""
    given: SlotDataBuilder | None = None
    is_cuttable: bool = False
    shorten: ChunkShortener | None = None

    # Both follow from the above, and every build asks for them.
    place: PartPlacer = field(init=False, repr=False, compare=False)
    absent: PartReport = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place = build_part_placer(self.name, self.volatility, self.frame, self.lead, self.slot)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "absent", PartReport(self.name, omitted=self.needs or "nothing to say"))


@dataclass(frozen=True)
class Layout:
    """A prompt dialect."""

    name: str
    parts: tuple[LayoutPart, ...]
    summary: str = ""
    problems: Callable[[PromptInputs], Sequence[str]] = field(default=lambda _: ())
    slots: tuple[str, ...] = ()
    # Inputs that have a place in this layout, but not beside these others: lost, and said so.
    displaced: Callable[[PromptInputs], Sequence[str]] = field(default=lambda _: ())

    @cached_property
    def used(self) -> frozenset[str]:
        """The inputs that some part has a place for."""
        return frozenset([name for part in self.parts for name in part.uses])


def build_call_part(name: str, slot: str, volatility: str, **more: Any) -> LayoutPart:
    """A part that only a call can fill; in a stored build its name stands in its place."""
    body = (TextChunk(f"⟦{name}⟧"),)
    return LayoutPart(
        name, lambda _: body, volatility=volatility, slot=slot, given=get_empty_slot_data, **more
    )


def get_empty_slot_data(_: PromptInputs) -> Mapping[str, Any]:
    """Given to renderers that need only the call's own slots."""
    return {}


@cache
def build_slot_placeholder(name: str) -> TextChunks:
    """The body of a part that says nothing yet, but to which a call may give words."""
    return (TextChunk(f"⟦{name}⟧", SLOT_ORIGIN),)


def frame_unless_placeholder(frame: Frame) -> Frame:
    """The frame around words; the bare name of a slot stays bare."""
    return lambda body: body if body[0][1] is SLOT_ORIGIN else frame(body)
