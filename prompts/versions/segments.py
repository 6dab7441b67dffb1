"""Segments to rows and back: tenants' words by digest, so that they are kept once and can be erased."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from personas.models import digest_of
from prompts.assembly.builder import Prompt
from prompts.assembly.json_codec import dump
from prompts.assembly.segments import OURS, Origin, Segment
from prompts.proof.canonical import canonical

# Short words of our own stand in the list itself; a row for each comma would cost more than it saves.
INLINE = 120
GONE = "⟦erased⟧"


@dataclass
class Packed:
    """A prompt ready to be stored."""

    segments: list[dict[str, Any]]
    tools: str
    report: str
    digest: str
    text_digest: str
    contents: dict[str, bytes] = field(default_factory=dict)


def packed(prompt: Prompt, report: bytes) -> Packed:
    """The list, the contents it names, and the digest that tells whether anything changed."""
    contents: dict[str, bytes] = {}

    def keep(data: bytes) -> str:
        digest = digest_of(data)
        contents[digest] = data
        return digest

    rows = [row_of(segment, keep) for segment in prompt.segments]
    tools = keep(as_json([dump(tool) for tool in prompt.tools])) if prompt.tools else ""
    words = [
        [row_words(row), segment.section, segment.volatility]
        for row, segment in zip(rows, prompt.segments, strict=True)
    ]
    digest = digest_of(canonical([prompt.layout, tools, words]))
    return Packed(rows, tools, keep(report), digest, digest_of(prompt.text.encode()), contents)


def row_of(segment: Segment, keep: Callable[[bytes], str]) -> dict[str, Any]:
    """One segment as plain data; what equals its default is left out."""
    row: dict[str, Any] = {"section": segment.section, "volatility": segment.volatility}
    if segment.origin == OURS and not segment.slot and len(segment.text) <= INLINE:
        row["text"] = segment.text
    else:
        row["content"] = keep(segment.text.encode())
    if segment.origin != OURS:
        row["origin"] = {name: value for name, value in segment.origin._asdict().items() if value}
    if segment.lead:
        row["lead"] = segment.lead
    if segment.slot:
        row |= {"slot": segment.slot, "span": segment.span}
        if segment.given:
            row["given"] = keep(as_json(dump(dict(segment.given))))
    return row


def row_words(row: Mapping[str, Any]) -> list[Any]:
    """What a reader could notice of a row; where the words came from is not among it."""
    return [row.get(name) for name in ("text", "content", "lead", "slot", "span", "given")]


def as_json(value: Any) -> bytes:
    """As written, key order kept: what a model sees of a schema is its text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def digests_in(segments: Iterable[Mapping[str, Any]], tools: str = "") -> set[str]:
    """Every content a version leans on."""
    found = {row[name] for row in segments for name in ("content", "given") if name in row}
    return found | ({tools} if tools else set())


def unpacked(
    segments: Sequence[Mapping[str, Any]], contents: Mapping[str, bytes | None]
) -> tuple[Segment, ...]:
    """The segments as they were built; an erased content shows as such."""
    return tuple([segment_of(row, contents) for row in segments])


def segment_of(row: Mapping[str, Any], contents: Mapping[str, bytes | None]) -> Segment:
    text, given = row.get("text", ""), None
    if "content" in row:
        data = contents[row["content"]]
        text = GONE if data is None else data.decode()
    if row.get("slot"):
        data = contents[row["given"]] if "given" in row else b"{}"
        given = json.loads(data or b"{}")
    origin = Origin(**row["origin"]) if "origin" in row else OURS
    return Segment(
        row["section"],
        text,
        origin,
        row["volatility"],
        row.get("lead", 0),
        row.get("slot", ""),
        given,
        row.get("span", 1),
    )
