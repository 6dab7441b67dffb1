"""An evidence bundle as read from a file: each part typed when asked for, or the reason why not."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

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
from prompts.proof.signing_keys import PublicKey, dump_public_key, load_public_key

EVIDENCE_FORMAT, EVIDENCE_FORMAT_VERSION, NOT_YET_SEALED = "dramatis-evidence", 1, "not yet sealed"
LATEST_LABEL = "latest"
BUNDLE_KEYS = (
    "format",
    "version",
    "text",
    "served",
    "slots",
    "versions",
    "segments",
    "lockfile",
    "parts",
    "pointer",
    "ledger",
    "block",
    "checkpoint",
)
C = TypeVar("C", bound=ChainedRow)


class MissingEvidence(Exception):
    """What a check needs is not in the bundle, with the reason."""


class EvidenceSegment(NamedTuple):
    """A stored segment, covered by the version's hash; its words; what its slot was given, as JSON text.

    `stored` holds short words of our own itself, as `text`; all else by the digests `content` and `given`.
    """

    stored: Mapping[str, Any]
    text: str | None
    given: str | None = None

    @property
    def is_erased(self) -> bool:
        """Whether something it names by its digest can no longer be read."""
        return self.text is None or (self.given is None and "given" in self.stored)


class EvidenceBlock(NamedTuple):
    """The ids and seals a block was closed over, and the blocks from it to the checkpoint's newest."""

    pairs: list[tuple[int, str]]
    links: list[StoredRow[LedgerBlockRow]]


class LabelPointer(NamedTuple):
    """That a label pointed at the version in a moment: the move that put it there, and those after it.

    They go on to the checkpoint's newest. `latest` is moved by building alone, and so has no moves.
    """

    label: str
    at: datetime
    moves: list[StoredRow[LabelMoveRow]]


class EvidenceBundle:
    """The parts of a bundle; asking for one raises Absent or ValueError when it cannot be had."""

    def __init__(self, data: object) -> None:
        self.data = data

    @cached_property
    def parts(self) -> Mapping[str, Any]:
        """Everything, once it is known to be a bundle that this code understands."""
        said = read_object(self.data, "the bundle")
        if said.get("format") != EVIDENCE_FORMAT:
            raise ValueError(f"the bundle does not say that it is a {EVIDENCE_FORMAT}")
        if read_number(said.get("version"), "the bundle's version") != EVIDENCE_FORMAT_VERSION:
            raise ValueError(f"the bundle is of another version than {EVIDENCE_FORMAT_VERSION}")
        check_exact_keys(said, set(BUNDLE_KEYS), "the bundle")
        return said

    def part(self, name: str, missing: str) -> Any:
        found = self.parts[name]
        if found is None:
            raise MissingEvidence(missing)
        return found

    @cached_property
    def text(self) -> str:
        return read_text(self.part("text", "the served words are not in the bundle"), "text")

    @cached_property
    def served(self) -> str:
        return read_text(self.part("served", "the bundle names no served digest"), "served")

    @cached_property
    def slots(self) -> Mapping[str, Any]:
        return read_object(self.part("slots", "the slot values are not in the bundle"), "slots")

    @cached_property
    def lockfile(self) -> Mapping[str, Any]:
        return read_object(self.part("lockfile", "the lockfile is not in the bundle"), "lockfile")

    @cached_property
    def parts_told(self) -> Mapping[str, Any]:
        return read_object(self.part("parts", "the list of parts is not in the bundle"), "parts")

    @cached_property
    def segments(self) -> list[EvidenceSegment]:
        listed = read_list(self.part("segments", "the segments are not in the bundle"), "segments")
        return [read_evidence_segment(item, f"segments[{place}]") for place, item in enumerate(listed)]

    @cached_property
    def versions(self) -> list[StoredRow[VersionRow]]:
        """The version, and those after it up to the checkpoint's newest."""
        return read_chain_links(VersionRow, self.parts["versions"], "versions")

    @property
    def version(self) -> VersionRow:
        return self.versions[0][0]

    @cached_property
    def pointer(self) -> LabelPointer:
        said = read_object(self.part("pointer", "no label and moment belong to this bundle"), "pointer")
        check_exact_keys(said, {"label", "at", "moves"}, "pointer")
        label, at = read_text(said["label"], "pointer.label"), read_json_timestamp(said["at"], "pointer.at")
        if label == LATEST_LABEL and said["moves"] == []:
            return LabelPointer(label, at, [])
        return LabelPointer(label, at, read_chain_links(LabelMoveRow, said["moves"], "pointer.moves"))

    @cached_property
    def ledger(self) -> tuple[LedgerRow, str]:
        said = read_object(self.part("ledger", "no ledger row belongs to this bundle"), "ledger")
        check_exact_keys(said, {"row", "seal"}, "ledger")
        return read_record(LedgerRow, said["row"], "ledger.row"), read_text(said["seal"], "ledger.seal")

    @cached_property
    def block(self) -> EvidenceBlock:
        found = self.part("block", "no ledger block belongs to this bundle")
        if found == NOT_YET_SEALED:
            raise MissingEvidence(
                "the ledger row is not yet sealed in a block: ask again after the next checkpoint"
            )
        said = read_object(found, "block")
        check_exact_keys(said, {"rows", "links"}, "block")
        pairs = [read_seal_pair(item) for item in read_list(said["rows"], "block.rows")]
        return EvidenceBlock(pairs, read_chain_links(LedgerBlockRow, said["links"], "block.links"))

    @cached_property
    def signed(self) -> tuple[SignedCheckpoint, PublicKey]:
        said = self.part("checkpoint", "no checkpoint covers this bundle yet")
        known = {"body", "signature", "key", "heads", "public_key"}
        check_exact_keys(read_object(said, "checkpoint"), known, "checkpoint")
        given = {name: said[name] for name in ("body", "signature", "key", "heads")}
        key = load_public_key(read_text(said["public_key"], "checkpoint.public_key"))
        if dump_public_key(key) != said["public_key"]:
            raise ValueError("checkpoint.public_key is not spelled as PEM should be")
        return read_record(SignedCheckpoint, given, "checkpoint"), key

    @cached_property
    def checkpoint(self) -> CheckpointStatement:
        return read_checkpoint(self.signed[0].body)

    @cached_property
    def heads(self) -> ChainHeads:
        return read_heads(self.signed[0].heads)


def read_evidence_segment(data: object, where: str) -> EvidenceSegment:
    said = read_object(data, where)
    # Further keys would stand in the evidence with nothing to vouch for them.
    check_exact_keys(said, {"stored", "text", "given"}, where)
    text, given = (
        None if said[name] is None else read_text(said[name], f"{where}.{name}") for name in ("text", "given")
    )
    return EvidenceSegment(read_object(said["stored"], f"{where}.stored"), text, given)


def read_chain_links(kind: type[C], data: object, where: str) -> list[StoredRow[C]]:
    links = [
        read_chain_link(kind, item, f"{where}[{place}]") for place, item in enumerate(read_list(data, where))
    ]
    if not links:
        raise ValueError(f"{where} must not be empty")
    return links


def read_chain_link(kind: type[C], data: object, where: str) -> StoredRow[C]:
    said = read_object(data, where)
    check_exact_keys(said, {"row", "hash", "previous"}, where)
    hashed, previous = (read_text(said[name], f"{where}.{name}") for name in ("hash", "previous"))
    return read_record(kind, said["row"], f"{where}.row"), hashed, previous


def read_seal_pair(data: object) -> tuple[int, str]:
    said = read_list(data, "a pair of block.rows")
    if len(said) != 2:
        raise ValueError("a pair of block.rows must be an id and a seal")
    return read_number(said[0], "an id of block.rows"), read_text(said[1], "a seal of block.rows")
