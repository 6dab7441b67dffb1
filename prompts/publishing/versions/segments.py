"""Convert segments to stored rows and back; text is stored by digest, so it is deduplicated and erasable.

A build packs a prompt with plain digests, without a database. These are replaced by the salted digests of the
stored contents before a version is compared or stored.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.salted_digests import salt_digest
from personas.contents.services import SaltedDigest
from personas.models import sha256_digest
from prompts.assembly.builder import AssembledPrompt
from prompts.assembly.json_codec import dataclass_json
from prompts.assembly.segments import LAYOUT_ORIGIN, Origin, Segment, SkillFile
from prompts.assembly.tool_definitions import ToolDefinition
from prompts.proof.canonical import encode_plain_json
from prompts.proof.text_salts import CONTENT_KEYS, combine_text_salts

# Layout text of up to this many characters is stored inline: a content row for it would cost more space.
MAX_INLINE_LENGTH = 120
ERASED_TEXT = "⟦erased⟧"


@dataclass
class StoredSegments:
    """An assembled prompt in the form in which it is stored: with the digests of its contents."""

    segments: list[dict[str, Any]]
    tools: str
    report: str
    digest: str
    text_digest: str
    skill_files: list[dict[str, Any]]


@dataclass
class PackedPrompt:
    """An assembled prompt whose segments name their contents by plain SHA-256. It is never stored."""

    layout: str
    segments: list[dict[str, Any]]
    tools: str
    report: str
    text_digest: str
    contents: dict[str, bytes] = field(default_factory=dict)
    skill_files: list[dict[str, Any]] = field(default_factory=list)

    def apply_salts(self, salted: Mapping[str, SaltedDigest]) -> StoredSegments:
        """Replace the plain digests. Those that are not in `salted` are kept: their content is not stored."""
        rows = [replace_digests(row, salted) for row in self.segments]
        skill_files = [replace_digests(row, salted) for row in self.skill_files]
        tools, report = (
            salted[name].digest if name in salted else name for name in (self.tools, self.report)
        )
        salts = {salted[name].digest: salted[name].salt for name in self.contents if name in salted}
        return StoredSegments(
            rows,
            tools,
            report,
            hash_segments(self.layout, tools, rows, skill_files),
            salt_digest(self.text_digest, combine_text_salts(rows, salts)),
            skill_files,
        )


def replace_digests(row: dict[str, Any], salted: Mapping[str, SaltedDigest]) -> dict[str, Any]:
    return row | {name: salted[row[name]].digest for name in CONTENT_KEYS if row.get(name) in salted}


def hash_segments(
    layout: str, tools: str, rows: Iterable[Mapping[str, Any]], skill_files: Iterable[Mapping[str, Any]] = ()
) -> str:
    """Return the digest of a version, which covers what bots get: its text, tools and skill files."""
    hashed_values = [[list_hashed_values(row), row["section"], row["volatility"]] for row in rows]
    files = [[row["name"], row["content"]] for row in skill_files]
    return sha256_digest(encode_plain_json([layout, tools, hashed_values, *([files] if files else [])]))


def pack_prompt(
    prompt: AssembledPrompt, report: bytes, skill_files: Iterable[SkillFile] = ()
) -> PackedPrompt:
    """Pack a prompt and the skill files that it offers into rows and contents."""
    contents: dict[str, bytes] = {}

    def keep(data: bytes) -> str:
        digest = sha256_digest(data)
        contents[digest] = data
        return digest

    rows = [pack_segment(segment, keep) for segment in prompt.segments]
    tools = keep(encode_definitions(prompt.tools)) if prompt.tools else ""
    text_digest = sha256_digest(prompt.text.encode())
    files = [pack_skill_file(file, keep) for file in skill_files]
    return PackedPrompt(prompt.layout, rows, tools, keep(report), text_digest, contents, files)


def pack_skill_file(file: SkillFile, keep: Callable[[bytes], str]) -> dict[str, Any]:
    """Pack a skill file as JSON data: its name, content, size in bytes and origin."""
    origin = {name: value for name, value in file.origin._asdict().items() if value}
    return {"name": file.name, "content": keep(file.data), "size": len(file.data), "origin": origin}


def pack_segment(segment: Segment, keep: Callable[[bytes], str]) -> dict[str, Any]:
    """Pack a segment as JSON data; default values are left out."""
    row: dict[str, Any] = {"section": segment.section, "volatility": segment.volatility}
    if segment.origin == LAYOUT_ORIGIN and not segment.slot and len(segment.text) <= MAX_INLINE_LENGTH:
        row["text"] = segment.text
    else:
        row["content"] = keep(segment.text.encode())
    if segment.origin != LAYOUT_ORIGIN:
        row["origin"] = {name: value for name, value in segment.origin._asdict().items() if value}
    if segment.lead:
        row["lead"] = segment.lead
    if segment.slot:
        row |= {"slot": segment.slot, "span": segment.span}
        if segment.given:
            row["given"] = keep(encode_json(dataclass_json(dict(segment.given))))
    return row


def list_hashed_values(row: Mapping[str, Any]) -> list[Any]:
    """List the values of a row that the digest covers: what affects the text, not the origins."""
    return [row.get(name) for name in ("text", "content", "lead", "slot", "span", "given")]


def encode_definitions(definitions: Sequence[ToolDefinition]) -> bytes:
    """Encode tool definitions as they are stored."""
    return encode_json([dataclass_json(definition) for definition in definitions])


def encode_json(value: Any) -> bytes:
    """Encode JSON without sorting keys: language models read tool schemas as text, so the order matters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def list_content_digests(segments: Iterable[Mapping[str, Any]], tools: str = "") -> set[str]:
    """Return the digests of all contents that a version uses."""
    digests = {row[name] for row in segments for name in CONTENT_KEYS if name in row}
    return digests | ({tools} if tools else set())


def unpack_segments(
    segments: Sequence[Mapping[str, Any]], contents: Mapping[str, bytes | None]
) -> tuple[Segment, ...]:
    """Restore the segments as built; erased contents are replaced by ERASED_TEXT."""
    return tuple([unpack_segment(row, contents) for row in segments])


def unpack_segment(row: Mapping[str, Any], contents: Mapping[str, bytes | None]) -> Segment:
    text, given = row.get("text", ""), None
    if "content" in row:
        data = contents[row["content"]]
        text = ERASED_TEXT if data is None else data.decode()
    if row.get("slot"):
        data = contents[row["given"]] if "given" in row else b"{}"
        given = json.loads(data or b"{}")
    origin = Origin(**row["origin"]) if "origin" in row else LAYOUT_ORIGIN
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
