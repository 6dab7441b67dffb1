"""Describe the text of a prompt as segments, and as blocks for the caches of providers."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from prompts.assembly.report import VOLATILITY_RANKS
from prompts.assembly.segments import CALL_VOLATILITIES, Segment


class SectionChunk(NamedTuple):
    """A run of adjacent characters that have the same section, volatility and slot."""

    section: str
    volatility: str
    slot: str
    length: int


def merge_chunks(chunks: Iterable[SectionChunk]) -> list[SectionChunk]:
    """Merge adjacent chunks with equal section, volatility and slot.

    Segments also differ in their origin, the record they come from, which responses do not contain.
    """
    out: list[SectionChunk] = []
    for chunk in chunks:
        if out and out[-1][:3] == chunk[:3]:
            out[-1] = chunk._replace(length=out[-1].length + chunk.length)
        else:
            out.append(chunk)
    return out


def list_section_chunks(segments: Iterable[Segment]) -> list[SectionChunk]:
    """Return the chunks of a version as it was built, without filling its slots."""
    return merge_chunks(
        SectionChunk(segment.section, segment.volatility, segment.slot, len(segment.text))
        for segment in segments
    )


def build_segments_json(chunks: Iterable[SectionChunk]) -> list[dict[str, Any]]:
    """Describe the section, the range in characters and the slot of each chunk."""
    segments: list[dict[str, Any]] = []
    start, is_cacheable = 0, True
    for chunk in chunks:
        is_cacheable = is_cacheable and chunk.volatility not in CALL_VOLATILITIES
        segments.append(
            {
                "section": chunk.section,
                "volatility": chunk.volatility,
                "range": [start, start + chunk.length],
                "slot": chunk.slot or None,
                "is_cacheable": is_cacheable,
            }
        )
        start += chunk.length
    return segments


def build_blocks_json(text: str, chunks: Iterable[SectionChunk]) -> list[dict[str, Any]]:
    """Cut the text wherever text begins that changes more often than everything before it.

    The volatility of a block is that of the whole text up to its end. Text that changes with a session or a
    turn begins a new block too, because no other text changes as often: so the cacheable text ends with a
    block.
    """
    cuts: list[tuple[int, str]] = []
    start = 0
    for chunk in chunks:
        if not cuts or VOLATILITY_RANKS[chunk.volatility] > VOLATILITY_RANKS[cuts[-1][1]]:
            cuts.append((start, chunk.volatility))
        start += chunk.length
    ends = [start for start, _ in cuts[1:]] + [len(text)]
    return [
        {
            "text": text[start:end],
            "volatility": volatility,
            "is_cacheable": volatility not in CALL_VOLATILITIES,
        }
        for (start, volatility), end in zip(cuts, ends, strict=True)
    ]
