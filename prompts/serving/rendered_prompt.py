"""Render a version for one call: fill its slots, and describe the text as segments and blocks."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from json import dumps
from typing import Any, NamedTuple

from prompts.assembly.report import VOLATILITY_RANKS
from prompts.assembly.segments import CALL_VOLATILITIES, TURN, Segment, get_call_volatility
from prompts.assembly.slots import Slots, SlotSpan, build_slot_spans, is_omitted_by_call

# The text of each slot for one call. None keeps the text from the build, "" leaves the slot out.
SlotTexts = tuple[str | None, ...]


class SectionChunk(NamedTuple):
    """A run of adjacent characters that have the same section, volatility and slot."""

    section: str
    volatility: str
    slot: str
    length: int


class RenderPart(NamedTuple):
    """A slot of the version, or the text between two slots, and the chunks it consists of."""

    span: SlotSpan
    chunks: tuple[SectionChunk, ...]


class RenderedPrompt(NamedTuple):
    """The text with its slots filled, and the start of the JSON response body.

    That start describes version and text; it is the same for every call with these slot texts.
    """

    slot_texts: SlotTexts
    text: str
    size: int
    digest: str
    json_start: bytes
    # SHA-256 state after hashing `json_start`. Each response copies it and hashes only the rest of its body.
    json_hash: Any


def build_render_parts(segments: Sequence[Segment]) -> tuple[RenderPart, ...]:
    """Split the segments of a version into parts: the slots, and the text between them.

    This is done once per version; the parts are cached.
    """
    chunks: list[list[SectionChunk]] = []
    position, is_chunk_open = 0, False
    while position < len(segments):
        first = segments[position]
        segment_run = segments[position : position + first.span]
        position += first.span
        part_chunks = [
            SectionChunk(segment.section, segment.volatility, first.slot, len(segment.text))
            for segment in segment_run
        ]
        if first.slot or not is_chunk_open:
            chunks.append([])
        chunks[-1] += part_chunks
        is_chunk_open = not first.slot
    return tuple(
        RenderPart(span, tuple(merge_chunks(part_chunks)))
        for span, part_chunks in zip(build_slot_spans(segments), chunks, strict=True)
    )


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


def render_slots(parts: Iterable[RenderPart], slots: Slots) -> SlotTexts:
    """Return the text of each slot for one call, in the order of the slots."""
    return tuple([span.render(slots, span.slot_data) for span, _ in parts if span.render is not None])


def render_prompt(
    parts: Iterable[RenderPart], slot_texts: SlotTexts, version_json: str = ""
) -> RenderedPrompt:
    """Render the prompt with these slot texts. The text is the same as from `assembly.slots.fill_spans`."""
    texts: list[str] = []
    chunks: list[SectionChunk] = []
    remaining_texts, is_changed = iter(slot_texts), False
    for part in parts:
        slot_text = None if part.span.render is None else next(remaining_texts)
        if slot_text == "":
            chunk = part.chunks[0]
            is_changed |= is_omitted_by_call(chunk.slot, part.span.slot_data, chunk.volatility)
            continue
        if slot_text is not None and part.span.is_replacing:
            texts.clear()
            chunks.clear()
        text, part_chunks = render_part(part, slot_text, is_first=not texts)
        if is_changed and slot_text is None:
            # The call omits the part before: no cached text continues here.
            part_chunks = [part_chunks[0]._replace(volatility=TURN), *part_chunks[1:]]
        is_changed = False
        texts.append(text)
        chunks += part_chunks
    return build_rendered_prompt("".join(texts), merge_chunks(chunks), slot_texts, version_json)


def render_part(
    part: RenderPart, slot_text: str | None, *, is_first: bool
) -> tuple[str, Sequence[SectionChunk]]:
    """Return the text and chunks of a part: the slot's text, or the text from the build if that is None.

    The leading separator is left out if the part is the first.
    """
    (text, lead, *_), part_chunks = part
    if slot_text is not None:
        text = slot_text if is_first else lead + slot_text
        volatility = get_call_volatility(part_chunks[0].volatility)
        return text, (part_chunks[0]._replace(volatility=volatility, length=len(text)),)
    if not is_first or not lead:
        return text, part_chunks
    return text[len(lead) :], (
        part_chunks[0]._replace(length=part_chunks[0].length - len(lead)),
        *part_chunks[1:],
    )


def build_rendered_prompt(
    text: str, chunks: Sequence[SectionChunk], slot_texts: SlotTexts, version_json: str
) -> RenderedPrompt:
    data = text.encode()
    digest = sha256(data).hexdigest()
    members = {
        "served_digest": digest,
        "text": text,
        "blocks": build_blocks_json(text, chunks),
        "segments": build_segments_json(chunks),
    }
    json_start = f"{{{version_json}{dumps(members, ensure_ascii=False, separators=(',', ':'))[1:-1]}".encode()
    return RenderedPrompt(slot_texts, text, len(data), digest, json_start, sha256(json_start))


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
