"""Read an evidence bundle from untrusted JSON. Each part of the bundle is validated on first access."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from core.salted_digests import combine_salts
from prompts.proof.call_values import CONTENTS_KEY, MissingCallValue, join_call_values, list_value_salts
from prompts.proof.canonical import format_timestamp
from prompts.proof.chain_heads import ChainHeads, read_heads
from prompts.proof.checkpoints import CheckpointStatement, SignedCheckpoint, read_checkpoint
from prompts.proof.hashed_rows import (
    ChainedRow,
    LabelMoveRow,
    LedgerBlockRow,
    LedgerRow,
    StoredRow,
    VersionRow,
)
from prompts.proof.json_reader import (
    check_exact_keys,
    read_json_timestamp,
    read_list,
    read_number,
    read_object,
    read_record,
    read_text,
)
from prompts.proof.ledger_blocks import get_settled_at
from prompts.proof.signing_keys import PublicKey, dump_public_key, load_public_key
from prompts.proof.text_salts import CONTENT_KEYS, combine_input_salts, combine_served_salts

EVIDENCE_FORMAT, EVIDENCE_FORMAT_VERSION, NOT_YET_SEALED = "dramatis-evidence", 4, "not yet sealed"
LATEST_LABEL = "latest"
BUNDLE_KEYS = (
    "format",
    "version",
    "text",
    "served",
    "slots",
    "slot_contents",
    "versions",
    "segments",
    "tools",
    "inputs",
    "salts",
    "lockfile",
    "parts",
    "pointer",
    "ledger",
    "block",
    "checkpoint",
)
C = TypeVar("C", bound=ChainedRow)


class MissingEvidence(Exception):
    """The bundle lacks a part that a check needs. The message says which."""


class EvidenceSegment(NamedTuple):
    """One segment of a version: its stored form, its text, and its slot data (`given`) as JSON text.

    The hash of the version covers `stored`. In `stored`, the key `text` holds a short text of the layout. The
    keys `content` and `given` hold only the digests of other text and of slot data. The field names of this
    class are keys of the bundle.
    """

    stored: Mapping[str, Any]
    text: str | None
    given: str | None = None

    @property
    def is_erased(self) -> bool:
        """Whether text or slot data is missing of which `stored` has the digest."""
        return self.text is None or (self.given is None and "given" in self.stored)


class EvidenceBlock(NamedTuple):
    """The ledger block of a fetch.

    `pairs` are the ids and seals of the rows in the block. `links` are the blocks from this block to the
    newest one that the checkpoint names.
    """

    pairs: list[tuple[int, str]]
    links: list[StoredRow[LedgerBlockRow]]


class LabelPointer(NamedTuple):
    """Evidence that a label pointed to the version at the time `at`.

    `moves` begins with the move that set the label to the version and ends with the newest move that the
    checkpoint names. The label `latest` has no moves, because it always points at the newest version.
    """

    label: str
    at: datetime
    moves: list[StoredRow[LabelMoveRow]]


class EvidenceBundle:
    """The parts of a bundle as properties.

    A property raises MissingEvidence if its part is missing, and ValueError if its part is invalid.
    """

    def __init__(self, data: object) -> None:
        self.data = data

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """The bundle as a JSON object, after a check of its format, format version and keys."""
        fields = read_object(self.data, "the bundle")
        if fields.get("format") != EVIDENCE_FORMAT:
            raise ValueError(f"the format of the bundle is not {EVIDENCE_FORMAT}")
        if read_number(fields.get("version"), "the bundle's version") != EVIDENCE_FORMAT_VERSION:
            raise ValueError(f"the version of the bundle is not {EVIDENCE_FORMAT_VERSION}")
        check_exact_keys(fields, set(BUNDLE_KEYS), "the bundle")
        return fields

    def require_part(self, name: str, missing: str) -> Any:
        part = self.content[name]
        if part is None:
            raise MissingEvidence(missing)
        return part

    @cached_property
    def text(self) -> str:
        return read_text(self.require_part("text", "the served text is not in the bundle"), "text")

    @cached_property
    def served(self) -> str:
        return read_text(self.require_part("served", "the bundle names no served digest"), "served")

    @cached_property
    def slots(self) -> Mapping[str, Any]:
        return read_object(self.require_part("slots", "the slot values are not in the bundle"), "slots")

    @cached_property
    def slot_contents(self) -> Mapping[str, str]:
        """The long slot values by digest, each as JSON text. Erased values are missing."""
        if self.content["slot_contents"] is None:
            return {}
        fields = read_object(self.content["slot_contents"], "slot_contents")
        return {name: read_text(text, f"slot_contents.{name}") for name, text in fields.items()}

    @cached_property
    def slot_digests(self) -> Mapping[str, str]:
        """The digests of the long slot values by name."""
        fields = read_object(self.slots.get(CONTENTS_KEY, {}), f"slots.{CONTENTS_KEY}")
        return {name: read_text(digest, f"slots.{CONTENTS_KEY}.{name}") for name, digest in fields.items()}

    @cached_property
    def call_values(self) -> Mapping[str, Any]:
        """All slot values of the call."""
        try:
            return join_call_values({**self.slots, CONTENTS_KEY: self.slot_digests}, self.slot_contents)
        except MissingCallValue as error:
            raise MissingEvidence(
                f"the value of {error.args[0]} is not in the bundle; its digest is kept"
            ) from None

    @cached_property
    def salts(self) -> Mapping[str, str]:
        """The salts of texts, slot data, tool definitions, inputs and slot values, by digest."""
        fields = read_object(self.content["salts"], "salts")
        return {digest: read_text(salt, f"salts.{digest}") for digest, salt in fields.items()}

    @cached_property
    def content_digests(self) -> list[str]:
        """The digests of texts and slot data that the segments name, in order."""
        stored = [segment.stored for segment in self.segments]
        return [read_text(row[name], name) for row in stored for name in CONTENT_KEYS if name in row]

    @cached_property
    def text_salt(self) -> str:
        """The salt of the digest of the version's text."""
        return combine_salts([self.salts.get(digest, "") for digest in self.content_digests])

    @cached_property
    def served_salt(self) -> str:
        """The salt of the digest of the served text."""
        if self.skill is not None:
            return self.salts.get(self.skill_file_digest, "")
        is_changed = self.content["inputs"] is not None
        inputs = combine_input_salts(self.inputs, self.salts) if is_changed else ""
        values = list_value_salts({CONTENTS_KEY: self.slot_digests}, self.salts)
        return combine_served_salts(self.text_salt, inputs, values)

    @property
    def skill(self) -> str | None:
        """The name of the skill whose file was served; None if it was the prompt."""
        return None if self.content["ledger"] is None else self.ledger[0].skill

    @property
    def skill_file_digest(self) -> str:
        """The digest of the file that the version offers under the name of the skill."""
        for item in self.version.skill_files:
            file = read_object(item, "a skill file of the version")
            if file.get("name") == self.skill:
                return read_text(file.get("content"), "the digest of a skill file")
        raise ValueError("the version does not offer the skill of the ledger row")

    @cached_property
    def lockfile(self) -> Mapping[str, Any]:
        return read_object(self.require_part("lockfile", "the lockfile is not in the bundle"), "lockfile")

    @cached_property
    def lockfile_parts(self) -> Mapping[str, Any]:
        return read_object(self.require_part("parts", "the list of parts is not in the bundle"), "parts")

    @cached_property
    def segments(self) -> list[EvidenceSegment]:
        listed = read_list(self.require_part("segments", "the segments are not in the bundle"), "segments")
        return [read_evidence_segment(item, f"segments[{place}]") for place, item in enumerate(listed)]

    @cached_property
    def tools(self) -> str | None:
        """The tool definitions of the version as stored, which is JSON text; None without definitions."""
        data = self.content["tools"]
        return None if data is None else read_text(data, "tools")

    @cached_property
    def inputs(self) -> Mapping[str, str]:
        """The inputs of the version by digest, each as JSON text, if the call changed them."""
        if self.content["inputs"] is None:
            raise MissingEvidence("the inputs of the version are not in the bundle")
        fields = read_object(self.content["inputs"], "inputs")
        return {name: read_text(text, f"inputs.{name}") for name, text in fields.items()}

    @cached_property
    def versions(self) -> list[StoredRow[VersionRow]]:
        """The version of the bundle and all later versions up to the newest one that the checkpoint names."""
        return read_chain_links(VersionRow, self.content["versions"], "versions")

    @property
    def version(self) -> VersionRow:
        return self.versions[0][0]

    @cached_property
    def pointer(self) -> LabelPointer:
        fields = read_object(self.require_part("pointer", "the bundle has no label and time"), "pointer")
        check_exact_keys(fields, {"label", "at", "moves"}, "pointer")
        label, at = (
            read_text(fields["label"], "pointer.label"),
            read_json_timestamp(fields["at"], "pointer.at"),
        )
        if label == LATEST_LABEL and fields["moves"] == []:
            return LabelPointer(label, at, [])
        return LabelPointer(label, at, read_chain_links(LabelMoveRow, fields["moves"], "pointer.moves"))

    @cached_property
    def ledger(self) -> tuple[LedgerRow, str]:
        fields = read_object(self.require_part("ledger", "the bundle has no ledger row"), "ledger")
        check_exact_keys(fields, {"row", "seal"}, "ledger")
        return read_record(LedgerRow, fields["row"], "ledger.row"), read_text(fields["seal"], "ledger.seal")

    @cached_property
    def block(self) -> EvidenceBlock:
        part = self.require_part("block", "the bundle has no ledger block")
        if part == NOT_YET_SEALED:
            raise MissingEvidence(
                "the ledger row is not yet sealed in a block, so no checkpoint covers this fetch: the first "
                f"one signed after {format_timestamp(get_settled_at(self.ledger[0].at))} will"
            )
        fields = read_object(part, "block")
        check_exact_keys(fields, {"rows", "links"}, "block")
        pairs = [read_seal_pair(item) for item in read_list(fields["rows"], "block.rows")]
        return EvidenceBlock(pairs, read_chain_links(LedgerBlockRow, fields["links"], "block.links"))

    @cached_property
    def signed(self) -> tuple[SignedCheckpoint, PublicKey]:
        fields = self.require_part("checkpoint", "no checkpoint covers this bundle yet")
        known = {"body", "signature", "key", "heads", "public_key"}
        check_exact_keys(read_object(fields, "checkpoint"), known, "checkpoint")
        checkpoint = {name: fields[name] for name in ("body", "signature", "key", "heads")}
        key = load_public_key(read_text(fields["public_key"], "checkpoint.public_key"))
        if dump_public_key(key) != fields["public_key"]:
            raise ValueError("checkpoint.public_key is not valid PEM")
        return read_record(SignedCheckpoint, checkpoint, "checkpoint"), key

    @cached_property
    def checkpoint(self) -> CheckpointStatement:
        return read_checkpoint(self.signed[0].body)

    @cached_property
    def heads(self) -> ChainHeads:
        return read_heads(self.signed[0].heads)


def read_evidence_segment(data: object, where: str) -> EvidenceSegment:
    fields = read_object(data, where)
    # Reject further keys, because no digest would cover them.
    check_exact_keys(fields, {"stored", "text", "given"}, where)
    text, slot_data = (
        None if fields[name] is None else read_text(fields[name], f"{where}.{name}")
        for name in ("text", "given")
    )
    return EvidenceSegment(read_object(fields["stored"], f"{where}.stored"), text, slot_data)


def read_chain_links(kind: type[C], data: object, where: str) -> list[StoredRow[C]]:
    links = [
        read_chain_link(kind, item, f"{where}[{place}]") for place, item in enumerate(read_list(data, where))
    ]
    if not links:
        raise ValueError(f"{where} must not be empty")
    return links


def read_chain_link(kind: type[C], data: object, where: str) -> StoredRow[C]:
    fields = read_object(data, where)
    check_exact_keys(fields, {"row", "hash", "previous"}, where)
    hash_, previous = (read_text(fields[name], f"{where}.{name}") for name in ("hash", "previous"))
    return read_record(kind, fields["row"], f"{where}.row"), hash_, previous


def read_seal_pair(data: object) -> tuple[int, str]:
    pair = read_list(data, "a pair of block.rows")
    if len(pair) != 2:
        raise ValueError("a pair of block.rows must be an id and a seal")
    return read_number(pair[0], "an id of block.rows"), read_text(pair[1], "a seal of block.rows")
