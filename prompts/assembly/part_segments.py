"""Convert the body of a part to segments.

The converting function is built once per part, because every build calls it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from prompts.assembly.frames import Frame, TextFrame
from prompts.assembly.segments import LAYOUT_ORIGIN, Segment, TextChunks

SlotData = Mapping[str, Any] | None
# Appends a body, with its slot data, to the segments; returns the text it added.
PartPlacer = Callable[[list[Segment], TextChunks, SlotData], str]
# Creates a named tuple without its constructor. This is twice as fast, and every chunk needs it.
new_tuple = tuple.__new__


def build_part_placer(name: str, volatility: str, frame: Frame, lead: str, slot: str) -> PartPlacer:
    """Build the function that places a part; a constant opening text gets its segment built in advance."""
    if isinstance(frame, TextFrame) and frame.opening and not slot:
        return build_framed_placer(name, volatility, frame, lead)
    return build_generic_placer(name, volatility, frame, lead, slot)


def build_framed_placer(name: str, volatility: str, frame: TextFrame, lead: str) -> PartPlacer:
    """Build the function for parts with a constant opening and no slot."""
    ending, tag = frame.ending, frame.tag
    first = Segment(name, frame.opening, LAYOUT_ORIGIN, volatility)
    led = first._replace(text=lead + first.text, lead=len(lead))
    last = Segment(name, ending, LAYOUT_ORIGIN, volatility)

    def place(segments: list[Segment], body: TextChunks, _: SlotData) -> str:
        opening = led if segments else first
        body_text = body[0][0] if len(body) == 1 else "".join([text for text, _ in body])
        if "<" in body_text and tag and frame.is_closed_by(body_text):
            body = frame.escape_body(body)
            body_text = "".join([text for text, _ in body])
        segments.append(opening)
        segments += [
            new_tuple(Segment, (name, text, origin, volatility, 0, "", None, 1)) for text, origin in body
        ]
        if ending:
            segments.append(last)
        return f"{opening.text}{body_text}{ending}"

    return place


def build_generic_placer(name: str, volatility: str, frame: Frame, lead: str, slot: str) -> PartPlacer:
    """Build the function for all other parts; the first segment carries the separator and the slot."""
    size = len(lead)

    def place(segments: list[Segment], body: TextChunks, slot_data: SlotData) -> str:
        chunks = frame(body)
        text, origin = chunks[0]
        led, span = size if segments else 0, len(chunks)
        text = lead + text if led else text
        segments.append(
            new_tuple(Segment, (name, text, origin, volatility, led, slot, slot_data, span if slot else 1))
        )
        if span == 1:
            return text
        rest = chunks[1:]
        segments += [
            new_tuple(Segment, (name, chunk, origin, volatility, 0, "", None, 1)) for chunk, origin in rest
        ]
        return "".join([text, *[chunk for chunk, _ in rest]])

    return place
