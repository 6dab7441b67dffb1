"""Render a version for one call: fill its slots."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from json import dumps
from typing import Any, NamedTuple

from prompts.assembly.segments import TURN, Segment, get_call_volatility
from prompts.assembly.slots import Slots, SlotSpan, build_slot_spans, is_omitted_by_call
from prompts.publishing.versions.text_blocks import (
    SectionChunk,
    build_blocks_json,
    build_segments_json,
    merge_chunks,
)

# The text of each slot for one call. None keeps the text from the build, "" leaves the slot out.
SlotTexts = tuple[str | None, ...]


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
            # The call leaves out the part before this one, so no cached text continues here.
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
