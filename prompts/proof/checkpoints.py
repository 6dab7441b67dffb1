"""Checkpoints: signed statements about the heads (newest rows) of all hash chains of a workspace.

Each checkpoint contains the hash of the previous one, so the checkpoints are a hash chain too.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature

from prompts.proof.canonical import (
    build_digest_message,
    canonical_digest,
    canonical_json,
    format_timestamp,
    parse_canonical_json,
)
from prompts.proof.chain_heads import ChainHeads, HeadsSummary, read_heads
from prompts.proof.faults import Fault
from prompts.proof.json_reader import read_json_timestamp, read_number, read_object, read_record, read_text
from prompts.proof.signing_keys import PrivateKey, PublicKey, get_key_id

CHECKPOINT_DOMAIN = "checkpoint"


class ExpiryMark(NamedTuple):
    """The newest expiry, that is, deletion of a block's rows by retention. 0 and "" if there is none."""

    sequence: int = 0
    hash: str = ""


class LedgerMark(NamedTuple):
    """The newest ledger block and the id of its last row. 0 and "" if there is none."""

    sequence: int = 0
    hash: str = ""
    last_id: int = 0


NO_EXPIRY, NO_BLOCK = ExpiryMark(), LedgerMark()
NO_VERSIONS, NO_MOVES = ChainHeads().summarize()


@dataclass(frozen=True)
class CheckpointStatement:
    """The state of the hash chains of one workspace at one time.

    `previous` is the hash of the previous checkpoint of the workspace, empty for the first.
    """

    workspace: int
    at: datetime
    versions: HeadsSummary = NO_VERSIONS
    label_moves: HeadsSummary = NO_MOVES
    ledger: LedgerMark = NO_BLOCK
    expiries: ExpiryMark = NO_EXPIRY
    previous: str = ""

    def body(self) -> dict[str, Any]:
        """Return the signed content as plain JSON data."""
        return {
            "workspace": self.workspace,
            "at": format_timestamp(self.at),
            "versions": dict(vars(self.versions)),
            "label_moves": dict(vars(self.label_moves)),
            "ledger": self.ledger._asdict(),
            "expiries": self.expiries._asdict(),
            "previous": self.previous,
        }

    def matches_heads(self, heads: ChainHeads) -> bool:
        """Return whether these heads are complete and have the summaries of this checkpoint."""
        return heads.is_whole and heads.summarize() == (self.versions, self.label_moves)


def read_checkpoint(body: object) -> CheckpointStatement:
    """Parse the body of a checkpoint. Raise ValueError unless rendering the result gives the same body."""
    fields = read_object(body, "the checkpoint")
    statement = CheckpointStatement(
        workspace=read_number(fields.get("workspace"), "the checkpoint's workspace"),
        at=read_json_timestamp(fields.get("at"), "the checkpoint's time"),
        versions=read_record(HeadsSummary, fields.get("versions"), "the checkpoint's versions"),
        label_moves=read_record(HeadsSummary, fields.get("label_moves"), "the checkpoint's label moves"),
        ledger=read_record(LedgerMark, fields.get("ledger"), "the checkpoint's ledger"),
        expiries=read_record(ExpiryMark, fields.get("expiries"), "the checkpoint's expiries"),
        previous=read_text(fields.get("previous"), "the checkpoint's previous"),
    )
    # Comparing the canonical forms detects unknown keys, also in nested objects.
    if canonical_json(statement.body()) != canonical_json(fields):
        raise ValueError("the checkpoint contains unexpected fields")
    return statement


@dataclass(frozen=True)
class SignedCheckpoint:
    """The body of a checkpoint, its signature in Base64, the id of the signing key, and the chain heads.

    The signature covers the body only.
    """

    body: Mapping[str, Any]
    signature: str
    key: str
    heads: Mapping[str, Any] = field(default_factory=lambda: ChainHeads().to_json())

    @property
    def hash(self) -> str:
        """The hash that the next checkpoint refers to as `previous`."""
        return canonical_digest(CHECKPOINT_DOMAIN, self.body)


def sign_statement(
    checkpoint: CheckpointStatement, private_key: PrivateKey, heads: ChainHeads | None = None
) -> SignedCheckpoint:
    body = checkpoint.body()
    signature = b64encode(private_key.sign(build_digest_message(CHECKPOINT_DOMAIN, body))).decode()
    return SignedCheckpoint(
        body, signature, get_key_id(private_key.public_key()), (heads or ChainHeads()).to_json()
    )


def verify_signature(signed: SignedCheckpoint, public_key: PublicKey) -> bool:
    """Return whether the signature was made with this key over the body. Malformed signatures are invalid."""
    try:
        signature = b64decode(signed.signature, validate=True)
        public_key.verify(signature, build_digest_message(CHECKPOINT_DOMAIN, signed.body))
    except (InvalidSignature, ValueError, TypeError):
        return False
    # Base64 has several encodings of the same bytes; only the canonical one is accepted.
    return b64encode(signature).decode() == signed.signature and signed.key == get_key_id(public_key)


def read_signed_checkpoint(data: object) -> SignedCheckpoint:
    signed = read_record(SignedCheckpoint, data, "the signed checkpoint")
    read_checkpoint(signed.body)
    read_heads(signed.heads)
    return signed


def format_checkpoint_line(signed: SignedCheckpoint) -> str:
    """Format one line of the checkpoint file, which holds a second copy of the checkpoints."""
    return canonical_json(vars(signed)).decode() + "\n"


def read_checkpoint_lines(lines: Iterable[str]) -> Iterator[SignedCheckpoint | Fault]:
    """Yield the checkpoints of a checkpoint file, line by line; an unreadable line becomes a fault."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield read_signed_checkpoint(parse_canonical_json(line))
        except ValueError as error:
            yield Fault(
                "checkpoint-file", f"line {number} of the checkpoint file", f"it cannot be read: {error}"
            )
