"""A version laid out for one call: its text, where each section stands in it, and where caches may break."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from json import dumps
from typing import Any, NamedTuple

from prompts.assembly.report import find_cache_boundaries
from prompts.assembly.segments import SESSION, TURN, Segment
from prompts.assembly.slots import Slots, SlotSpan, build_slot_spans

# Nothing from here on is worth a place in a provider's cache.
PER_CALL_VOLATILITIES = frozenset({SESSION, TURN})
# What each slot says of a call: None keeps the words that were built, "" leaves the part out.
SlotTexts = tuple[str | None, ...]


class SectionChunk(NamedTuple):
    """So many characters of one section."""

    section: str
    volatility: str
    slot: str
    length: int


class RenderPart(NamedTuple):
    """A stretch of the built text with the pieces it consists of."""

    stretch: SlotSpan
    pieces: tuple[SectionChunk, ...]


class RenderedPrompt(NamedTuple):
    """The filled text, and the beginning of an answer's JSON: what is told of the version and of the text."""

    said: SlotTexts
    text: str
    size: int
    digest: str
    told: bytes
    # SHA-256 so far: bodies differ only in what comes after.
    hashed: Any


def build_render_parts(segments: Sequence[Segment]) -> tuple[RenderPart, ...]:
    """The stretches of the skeleton, each with its pieces; made once per version."""
    pieces: list[list[SectionChunk]] = []
    place, is_open = 0, False
    while place < len(segments):
        first = segments[place]
        run = segments[place : place + first.span]
        place += first.span
        made = [SectionChunk(one.section, one.volatility, first.slot, len(one.text)) for one in run]
        if first.slot or not is_open:
            pieces.append([])
        pieces[-1] += made
        is_open = not first.slot
    return tuple(
        RenderPart(stretch, tuple(merge_chunks(own)))
        for stretch, own in zip(build_slot_spans(segments), pieces, strict=True)
    )


def merge_chunks(pieces: Iterable[SectionChunk]) -> list[SectionChunk]:
    """Neighbours of one section in one; who wrote which words of it is told by the provenance."""
    out: list[SectionChunk] = []
    for piece in pieces:
        if out and out[-1][:3] == piece[:3]:
            out[-1] = piece._replace(length=out[-1].length + piece.length)
        else:
            out.append(piece)
    return out


def render_slots(parts: Iterable[RenderPart], slots: Slots) -> SlotTexts:
    """What the call puts into the slots, in their order."""
    return tuple(
        [stretch.render(slots, stretch.slot_data) for stretch, _ in parts if stretch.render is not None]
    )


def render_prompt(parts: Iterable[RenderPart], said: SlotTexts, told_before: str = "") -> RenderedPrompt:
    """The same text as `fill` gives, with the place of every section."""
    texts: list[str] = []
    pieces: list[SectionChunk] = []
    rest = iter(said)
    for part in parts:
        words = None if part.stretch.render is None else next(rest)
        if words == "":
            continue
        if words is not None and part.stretch.is_replacing:
            texts.clear()
            pieces.clear()
        text, own = render_part(part, words, is_first=not texts)
        texts.append(text)
        pieces += own
    return build_rendered_prompt("".join(texts), merge_chunks(pieces), said, told_before)


def render_part(part: RenderPart, words: str | None, *, is_first: bool) -> tuple[str, Sequence[SectionChunk]]:
    """The built words or those of the call, without the separator where nothing stands before."""
    (text, lead, *_), own = part
    if words is not None:
        said = words if is_first else lead + words
        return said, (own[0]._replace(length=len(said)),)
    if not is_first or not lead:
        return text, own
    return text[len(lead) :], (own[0]._replace(length=own[0].length - len(lead)), *own[1:])


def build_rendered_prompt(
    text: str, pieces: Sequence[SectionChunk], said: SlotTexts, told_before: str
) -> RenderedPrompt:
    data = text.encode()
    digest = sha256(data).hexdigest()
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + piece.length)
    breaks = find_cache_boundaries(
        [(piece.volatility, at) for piece, at in zip(pieces, starts, strict=False)]
    )
    lasting = next(
        (at for piece, at in zip(pieces, starts, strict=False) if piece.volatility in PER_CALL_VOLATILITIES),
        len(text),
    )
    told = {
        "served_digest": digest,
        "text": text,
        "segments": [
            {
                "section": piece.section,
                "volatility": piece.volatility,
                "range": [at, at + piece.length],
                "slot": piece.slot or None,
                "cacheable": at + piece.length <= lasting,
            }
            for piece, at in zip(pieces, starts, strict=False)
        ],
        "cache_boundaries": [{"offset": offset, "volatility": level} for level, offset in breaks],
    }
    whole = f"{{{told_before}{dumps(told, ensure_ascii=False, separators=(',', ':'))[1:-1]}".encode()
    return RenderedPrompt(said, text, len(data), digest, whole, sha256(whole))
