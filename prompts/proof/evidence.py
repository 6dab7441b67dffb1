"""Build evidence bundles for one prompt and verify them without a database."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from prompts.proof import evidence_checks
from prompts.proof.call_values import CONTENTS_KEY
from prompts.proof.canonical import plain_json
from prompts.proof.checkpoints import SignedCheckpoint
from prompts.proof.evidence_reader import (
    EVIDENCE_FORMAT,
    EVIDENCE_FORMAT_VERSION,
    NOT_YET_SEALED,
    EvidenceBundle,
    EvidenceSegment,
    LabelPointer,
    MissingEvidence,
)
from prompts.proof.hashed_rows import LedgerBlockRow, LedgerRow, StoredRow, VersionRow
from prompts.proof.signing_keys import PublicKey, dump_public_key

CheckState = Literal["ok", "failed", "absent"]
CheckFunction = Callable[[EvidenceBundle], str]


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of a bundle, with a message for users."""

    name: str
    state: CheckState
    message: str


def build_evidence_bundle(
    *,
    text: str | None,
    served: str | None,
    slots: Mapping[str, Any] | None,
    slot_contents: Mapping[str, str] | None = None,
    versions: Sequence[StoredRow[VersionRow]],
    segments: Sequence[EvidenceSegment] | None,
    tools: str | None = None,
    inputs: Mapping[str, str] | None = None,
    salts: Mapping[str, str],
    lockfile: Mapping[str, Any] | None,
    parts: Mapping[str, str] | None = None,
    pointer: LabelPointer | None = None,
    ledger: tuple[LedgerRow, str] | None = None,
    block_rows: Iterable[tuple[int, str]] = (),
    blocks: Sequence[StoredRow[LedgerBlockRow]] = (),
    signed: tuple[SignedCheckpoint, PublicKey] | None = None,
) -> dict[str, Any]:
    """Build an evidence bundle as plain JSON data.

    `versions`, `blocks` and the moves of `pointer` are spans of hash chains. `versions` begins with the
    version that the bundle is about, `blocks` with the block that contains the ledger row, and the moves with
    the move that set the label. Each span ends with the newest row that the checkpoint names. The heads of
    the checkpoint must be complete. `block_rows` are the (id, seal) pairs of the rows in the first block. The
    text of an erased segment is None. `tools` are the tool definitions exactly as stored, because the digest
    in the version covers these bytes; None if the version has none, or if they were erased. `inputs` are the
    stored inputs of the version by digest, for a call that changed them. `slots` are the values as the ledger
    row stores them, and `slot_contents` the values that it names by digest. `salts` are those of all texts in
    the bundle, by their salted digests.
    """
    sealed = {"rows": tuple(block_rows), "links": [chain_link_json(link) for link in blocks]}
    unsealed = NOT_YET_SEALED if ledger else None
    bundle: dict[str, Any] = plain_json(
        {
            "format": EVIDENCE_FORMAT,
            "version": EVIDENCE_FORMAT_VERSION,
            "text": text,
            "served": served,
            "slots": slots,
            "slot_contents": slot_contents,
            "versions": [chain_link_json(link) for link in versions],
            "segments": None if segments is None else [segment._asdict() for segment in segments],
            "tools": tools,
            "inputs": inputs,
            "salts": salts,
            "lockfile": lockfile,
            "parts": parts,
            "pointer": pointer_json(pointer) if pointer else None,
            "ledger": {"row": ledger[0].to_json(), "seal": ledger[1]} if ledger else None,
            "block": sealed if blocks else unsealed,
            "checkpoint": {**vars(signed[0]), "public_key": dump_public_key(signed[1])} if signed else None,
        }
    )
    return bundle


def pointer_json(pointer: LabelPointer) -> dict[str, Any]:
    return {
        "label": pointer.label,
        "at": pointer.at,
        "moves": [chain_link_json(move) for move in pointer.moves],
    }


def chain_link_json(stored: StoredRow[Any]) -> dict[str, Any]:
    row, hash_, previous = stored
    return {"row": row.to_json(), "hash": hash_, "previous": previous}


def verify_evidence(
    data: object, *, fill: evidence_checks.SlotFiller | None = None, expected_key: str | None = None
) -> list[CheckResult]:
    """Run every check that applies to the bundle. Invalid data makes checks fail but raises no exception.

    `fill` rebuilds the served text from segments and slot values. `expected_key` is the id or the PEM of the
    operator's public key, which the caller knows from another source than the bundle. Without it, the origin
    of the signature is not verified.
    """
    bundle = EvidenceBundle(data)
    checks: dict[str, CheckFunction] = {
        **EVIDENCE_CHECKS,
        REBUILD_CHECK: partial(evidence_checks.check_rebuilt_text, fill=fill),
        EXPECTED_KEY_CHECK: partial(evidence_checks.check_expected_key, expected=expected_key),
    }
    irrelevant = list_irrelevant_checks(data)
    return [
        run_evidence_check(name, check, bundle) for name, check in checks.items() if name not in irrelevant
    ]


def list_irrelevant_checks(data: object) -> frozenset[str]:
    """List the names of the checks that do not apply to the bundle.

    A bundle is evidence either of one fetch of a prompt or of the version that a label pointed at. The checks
    of the other kind do not apply. If it is unclear which kind the bundle is, all checks run. Only a call
    that changed the inputs of the version has inputs to check, and only a call that sent slot values has
    their contents.
    """
    fields = data if isinstance(data, Mapping) else {}
    unchanged = frozenset({INPUTS_CHECK}) if fields.get("inputs") is None else frozenset()
    plain = frozenset() if has_slot_contents(fields) else frozenset({SLOT_CONTENTS_CHECK})
    # A skill file is served as it is stored: there is nothing to rebuild.
    other = frozenset({REBUILD_CHECK if is_skill_bundle(fields) else SKILL_CHECK})
    return unchanged | plain | other | list_irrelevant_kinds(fields)


def is_skill_bundle(fields: Mapping[str, Any]) -> bool:
    ledger = fields.get("ledger")
    row = ledger.get("row") if isinstance(ledger, Mapping) else None
    return isinstance(row, Mapping) and row.get("skill") is not None


def has_slot_contents(fields: Mapping[str, Any]) -> bool:
    slots = fields.get("slots")
    return fields.get("slot_contents") is not None or not isinstance(slots, Mapping) or CONTENTS_KEY in slots


def list_irrelevant_kinds(fields: Mapping[str, Any]) -> frozenset[str]:
    """List the checks of the kind of evidence that the bundle is not."""
    pointer, fetch = fields.get("pointer"), [fields.get(name) for name in FETCH_KEYS]
    if pointer is None:
        return POINTER_CHECKS if fetch[0] is not None else frozenset()
    is_moved = not isinstance(pointer, Mapping) or pointer.get("moves") != []
    irrelevant = frozenset() if is_moved else frozenset({MOVE_COVERAGE_CHECK})
    return irrelevant | FETCH_CHECKS if fetch == [None] * len(FETCH_KEYS) else irrelevant


def run_evidence_check(name: str, check: CheckFunction, bundle: EvidenceBundle) -> CheckResult:
    try:
        return CheckResult(name, "ok", check(bundle))
    except MissingEvidence as reason:
        return CheckResult(name, "absent", str(reason))
    except ValueError as reason:
        return CheckResult(name, "failed", str(reason))


def is_evidence_valid(results: Iterable[CheckResult]) -> bool:
    """Return whether no check failed. A check without evidence (`absent`) does not count as failed."""
    return all(result.state != "failed" for result in results)


INPUTS_CHECK = "inputs match the lockfile"
TOOLS_CHECK = "tool definitions match the version"
SKILL_CHECK = "skill file belongs to the version"
SALTS_CHECK = "salts belong to the texts"
SLOT_CONTENTS_CHECK = "slot values match their digests"
REBUILD_CHECK, MOVE_COVERAGE_CHECK = "text rebuilt", "checkpoint covers the label move"
EXPECTED_KEY_CHECK = "key is the expected key"
FETCH_KEYS = ("ledger", "block", "text", "served", "slots")
POINTER_CHECKS = frozenset({"label pointed to the version", MOVE_COVERAGE_CHECK})
FETCH_CHECKS = frozenset(
    {
        "bytes match the served digest",
        "slots match the ledger",
        SLOT_CONTENTS_CHECK,
        "ledger seal",
        "ledger row matches the version and the bytes",
        SKILL_CHECK,
        "seal is in its block",
        "block hash",
        "checkpoint covers the block",
        REBUILD_CHECK,
    }
)
EVIDENCE_CHECKS: dict[str, CheckFunction] = {
    "format": evidence_checks.check_evidence_format,
    "bytes match the served digest": evidence_checks.check_served_bytes,
    "segments match the version": evidence_checks.check_evidence_segments,
    SALTS_CHECK: evidence_checks.check_evidence_salts,
    "text matches its segments": evidence_checks.check_segment_texts,
    "segments join to the built text": evidence_checks.check_built_text,
    TOOLS_CHECK: evidence_checks.check_evidence_tools,
    "lockfile matches the version": evidence_checks.check_evidence_lockfile,
    INPUTS_CHECK: evidence_checks.check_evidence_inputs,
    "parts match the lockfile": evidence_checks.check_evidence_parts,
    "version hash": evidence_checks.check_version_hash,
    "label pointed to the version": evidence_checks.check_label_pointer,
    "slots match the ledger": evidence_checks.check_evidence_slots,
    SLOT_CONTENTS_CHECK: evidence_checks.check_slot_contents,
    "ledger seal": evidence_checks.check_ledger_seal,
    "ledger row matches the version and the bytes": evidence_checks.check_ledger_row,
    SKILL_CHECK: evidence_checks.check_skill_file,
    "seal is in its block": evidence_checks.check_seal_in_block,
    "block hash": evidence_checks.check_block_hash,
    "checkpoint covers the block": evidence_checks.check_block_coverage,
    "checkpoint covers the version": evidence_checks.check_version_coverage,
    MOVE_COVERAGE_CHECK: evidence_checks.check_move_coverage,
    "heads match the checkpoint": evidence_checks.check_evidence_heads,
    "signature": evidence_checks.check_evidence_signature,
}
