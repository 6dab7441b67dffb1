"""A layout is data: an ordered tuple of parts, each a section in a frame at its place."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from prompts.assembly.frames import Frame, bare
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.part_segments import Place, placing
from prompts.assembly.report import PartReport
from prompts.assembly.segments import RELEASE, Origin, Piece, Pieces

Section = Callable[[PromptInputs], Pieces]
Given = Callable[[PromptInputs], Mapping[str, Any] | None]
Shorten = Callable[[Pieces, int], tuple[Pieces, int]]
# Marks the name of a slot that stands where a call may put words.
AWAITED = Origin("slot")


@dataclass(frozen=True)
class Part:
    """One place in a prompt.

    `section` gives the words (none: the part is absent), `frame` what stands around them. A part with a
    `slot` can be rendered anew for a call: `given` keeps at build time what its renderer will need; None
    from it means that the part has no place in this prompt at all. `shorten` cuts a body whose pieces must
    stay whole or closed.
    """

    name: str
    section: Section
    frame: Frame = bare
    uses: tuple[str, ...] = ()
    volatility: str = RELEASE
    lead: str = "\n\n"
    needs: str = ""
    slot: str = ""
    given: Given | None = None
    is_cuttable: bool = False
    shorten: Shorten | None = None

    # Both follow from the above, and every build asks for them.
    place: Place = field(init=False, repr=False, compare=False)
    absent: PartReport = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place = placing(self.name, self.volatility, self.frame, self.lead, self.slot)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "absent", PartReport(self.name, omitted=self.needs or "nothing to say"))


@dataclass(frozen=True)
class Layout:
    """A prompt dialect."""

    name: str
    parts: tuple[Part, ...]
    summary: str = ""
    problems: Callable[[PromptInputs], Sequence[str]] = field(default=lambda _: ())
    slots: tuple[str, ...] = ()
    # Inputs that have a place in this layout, but not beside these others: lost, and said so.
    displaced: Callable[[PromptInputs], Sequence[str]] = field(default=lambda _: ())

    @cached_property
    def used(self) -> frozenset[str]:
        """The inputs that some part has a place for."""
        return frozenset([name for part in self.parts for name in part.uses])


def call_part(name: str, slot: str, volatility: str, **more: Any) -> Part:
    """A part that only a call can fill; in a stored build its name stands in its place."""
    body = (Piece(f"⟦{name}⟧"),)
    return Part(name, lambda _: body, volatility=volatility, slot=slot, given=nothing, **more)


def nothing(_: PromptInputs) -> Mapping[str, Any]:
    """Given to renderers that need only the call's own slots."""
    return {}


@cache
def awaited(name: str) -> Pieces:
    """The body of a part that says nothing yet, but to which a call may give words."""
    return (Piece(f"⟦{name}⟧", AWAITED),)


def when_said(frame: Frame) -> Frame:
    """The frame around words; the bare name of a slot stays bare."""
    return lambda body: body if body[0][1] is AWAITED else frame(body)
