"""How a part's body becomes segments: prepared once for each part, for it runs at every build."""

from collections.abc import Callable, Mapping
from typing import Any

from prompts.assembly.frames import Frame, TextFrame
from prompts.assembly.segments import LAYOUT_ORIGIN, Segment, TextChunks

SlotData = Mapping[str, Any] | None
# Adds a body, with what its slot was given, to the segments so far; returns the text it added.
PartPlacer = Callable[[list[Segment], TextChunks, SlotData], str]
# Runs for every piece, and is twice as quick as the constructor that looks for defaults.
new_tuple = tuple.__new__


def build_part_placer(name: str, volatility: str, frame: Frame, lead: str, slot: str) -> PartPlacer:
    """Where the first words are always the same, their segment is made beforehand."""
    if isinstance(frame, TextFrame) and frame.opening and not slot:
        return build_framed_placer(name, volatility, frame, lead)
    return build_generic_placer(name, volatility, frame, lead, slot)


def build_framed_placer(name: str, volatility: str, frame: TextFrame, lead: str) -> PartPlacer:
    """A body between the words of its frame."""
    ending, tag = frame.ending, frame.tag
    first = Segment(name, frame.opening, LAYOUT_ORIGIN, volatility)
    led = first._replace(text=lead + first.text, lead=len(lead))
    last = Segment(name, ending, LAYOUT_ORIGIN, volatility)

    def place(segments: list[Segment], body: TextChunks, _: SlotData) -> str:
        opening = led if segments else first
        said = body[0][0] if len(body) == 1 else "".join([text for text, _ in body])
        if "<" in said and tag and frame.is_closed_by(said):
            body = frame.kept_inside(body)
            said = "".join([text for text, _ in body])
        segments.append(opening)
        segments += [
            new_tuple(Segment, (name, text, origin, volatility, 0, "", None, 1)) for text, origin in body
        ]
        if ending:
            segments.append(last)
        return f"{opening.text}{said}{ending}"

    return place


def build_generic_placer(name: str, volatility: str, frame: Frame, lead: str, slot: str) -> PartPlacer:
    """Pieces of which the first carries the separator and, if a call may replace them, the slot."""
    size = len(lead)

    def place(segments: list[Segment], body: TextChunks, given: SlotData) -> str:
        pieces = frame(body)
        text, origin = pieces[0]
        led, span = size if segments else 0, len(pieces)
        text = lead + text if led else text
        segments.append(
            new_tuple(Segment, (name, text, origin, volatility, led, slot, given, span if slot else 1))
        )
        if span == 1:
            return text
        rest = pieces[1:]
        segments += [
            new_tuple(Segment, (name, said, origin, volatility, 0, "", None, 1)) for said, origin in rest
        ]
        return "".join([text, *[said for said, _ in rest]])

    return place
