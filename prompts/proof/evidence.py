"""Evidence of one prompt that can be checked without a database: what it holds, and whether it stands."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from prompts.proof import evidence_checks
from prompts.proof.canonical import plain
from prompts.proof.checkpoints import SignedCheckpoint
from prompts.proof.evidence_reader import (
    FORMAT,
    FORMAT_VERSION,
    NOT_YET_SEALED,
    Absent,
    Opened,
    Pointer,
    Segment,
)
from prompts.proof.hashed_rows import LedgerBlockRow, LedgerRow, Stored, VersionRow
from prompts.proof.signing_keys import PublicKey, public_pem

State = Literal["ok", "failed", "absent"]
Question = Callable[[Opened], str]


@dataclass(frozen=True)
class Check:
    """One question put to a bundle, and the answer in words."""

    name: str
    state: State
    words: str


def bundle(
    *,
    text: str | None,
    served: str | None,
    slots: Mapping[str, Any] | None,
    versions: Sequence[Stored[VersionRow]],
    segments: Sequence[Segment] | None,
    lockfile: Mapping[str, Any] | None,
    parts: Mapping[str, str] | None = None,
    pointer: Pointer | None = None,
    ledger: tuple[LedgerRow, str] | None = None,
    block_rows: Iterable[tuple[int, str]] = (),
    blocks: Sequence[Stored[LedgerBlockRow]] = (),
    signed: tuple[SignedCheckpoint, PublicKey] | None = None,
) -> dict[str, Any]:
    """JSON-ready evidence.

    `versions` begins with the version in question, `blocks` with the block that holds the ledger row, the
    pointer's moves with the one that put the label there; all go on to the newest that the checkpoint names,
    and the checkpoint's heads are whole. `block_rows` are the (id, seal) pairs of the first block. Words of a
    segment are None once they were erased.
    """
    sealed = {"rows": tuple(block_rows), "links": [link(each) for each in blocks]}
    waiting = NOT_YET_SEALED if ledger else None
    made: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "text": text,
            "served": served,
            "slots": slots,
            "versions": [link(each) for each in versions],
            "segments": None if segments is None else [segment._asdict() for segment in segments],
            "lockfile": lockfile,
            "parts": parts,
            "pointer": pointed(pointer) if pointer else None,
            "ledger": {"row": vars(ledger[0]), "seal": ledger[1]} if ledger else None,
            "block": sealed if blocks else waiting,
            "checkpoint": {**vars(signed[0]), "public_key": public_pem(signed[1])} if signed else None,
        }
    )
    return made


def pointed(pointer: Pointer) -> dict[str, Any]:
    return {"label": pointer.label, "at": pointer.at, "moves": [link(each) for each in pointer.moves]}


def link(stored: Stored[Any]) -> dict[str, Any]:
    row, hashed, previous = stored
    return {"row": vars(row), "hash": hashed, "previous": previous}


def verify_evidence(
    data: object, *, fill: evidence_checks.Fill | None = None, expected_key: str | None = None
) -> list[Check]:
    """Every check in words, whatever the data: a stranger's bundle may fail, but never raise.

    `fill` builds the text again from segments and slots. `expected_key` is the id or the PEM of the key that
    the caller knows the operator by; without it nothing says whose signature it is.
    """
    opened = Opened(data)
    asked: dict[str, Question] = {
        **CHECKS,
        REBUILT: partial(evidence_checks.rebuilt, fill=fill),
        KEY_EXPECTED: partial(evidence_checks.key_expected, expected=expected_key),
    }
    beside = beside_the_point(data)
    return [ask(name, question, opened) for name, question in asked.items() if name not in beside]


def beside_the_point(data: object) -> frozenset[str]:
    """Checks of what a bundle does not speak of: evidence of a fetch has no moment, and the other way round.

    A bundle that speaks of neither, or of half a fetch, is asked everything.
    """
    said = data if isinstance(data, Mapping) else {}
    pointer, fetch = said.get("pointer"), [said.get(name) for name in FETCH]
    if pointer is None:
        return OF_A_MOMENT if fetch[0] is not None else frozenset()
    is_moved = not isinstance(pointer, Mapping) or pointer.get("moves") != []
    beside = frozenset() if is_moved else frozenset({MOVE_COVERED})
    return beside | OF_A_FETCH if fetch == [None] * len(FETCH) else beside


def ask(name: str, question: Question, opened: Opened) -> Check:
    try:
        return Check(name, "ok", question(opened))
    except Absent as reason:
        return Check(name, "absent", str(reason))
    except ValueError as reason:
        return Check(name, "failed", str(reason))


def stands(found: Iterable[Check]) -> bool:
    """Whether nothing failed; what is absent is neither for nor against."""
    return all(check.state != "failed" for check in found)


REBUILT, MOVE_COVERED = "text built again", "checkpoint covers the label move"
KEY_EXPECTED = "key is the expected one"
FETCH = ("ledger", "block", "text", "served", "slots")
OF_A_MOMENT = frozenset({"label pointed at the version", MOVE_COVERED})
OF_A_FETCH = frozenset(
    {
        "bytes match the served digest",
        "slots match the ledger",
        "ledger seal",
        "ledger row fits the version and the bytes",
        "seal stands in its block",
        "block hash",
        "checkpoint covers the block",
        REBUILT,
    }
)
CHECKS: dict[str, Question] = {
    "format": evidence_checks.format_known,
    "bytes match the served digest": evidence_checks.bytes_match,
    "segments match the version": evidence_checks.segments_match,
    "words match their segments": evidence_checks.words_match,
    "segments join to the built text": evidence_checks.built_text_matches,
    "lockfile matches the version": evidence_checks.lockfile_matches,
    "parts match the lockfile": evidence_checks.parts_match,
    "version hash": evidence_checks.version_hash_matches,
    "label pointed at the version": evidence_checks.pointer_fits,
    "slots match the ledger": evidence_checks.slots_match,
    "ledger seal": evidence_checks.seal_matches,
    "ledger row fits the version and the bytes": evidence_checks.ledger_fits,
    "seal stands in its block": evidence_checks.seal_in_block,
    "block hash": evidence_checks.block_hash_matches,
    "checkpoint covers the block": evidence_checks.checkpoint_covers_block,
    "checkpoint covers the version": evidence_checks.checkpoint_covers_version,
    MOVE_COVERED: evidence_checks.checkpoint_covers_move,
    "heads match the checkpoint": evidence_checks.heads_match,
    "signature": evidence_checks.signature_valid,
}
