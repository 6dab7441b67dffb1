"""Signed statements of how far a workspace's chains had grown, each naming the statement before it."""

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
    parse_strict_json,
)
from prompts.proof.chain_heads import ChainHeads, HeadsSummary, read_heads
from prompts.proof.faults import Fault
from prompts.proof.json_reader import read_json_timestamp, read_number, read_object, read_record, read_text
from prompts.proof.signing_keys import PrivateKey, PublicKey, get_key_id

CHECKPOINT_DOMAIN = "checkpoint"


class RollOffMark(NamedTuple):
    """The newest roll-off; before the first it is nought and empty."""

    sequence: int = 0
    hash: str = ""


class LedgerMark(NamedTuple):
    """The newest ledger block, and the last row in it."""

    sequence: int = 0
    hash: str = ""
    last_id: int = 0


NO_ROLL_OFF, NO_BLOCK = RollOffMark(), LedgerMark()
NO_VERSIONS, NO_MOVES = ChainHeads().sums()


@dataclass(frozen=True)
class CheckpointStatement:
    """One workspace at one time; `previous` is the hash of its checkpoint before this one."""

    workspace: int
    at: datetime
    versions: HeadsSummary = NO_VERSIONS
    label_moves: HeadsSummary = NO_MOVES
    ledger: LedgerMark = NO_BLOCK
    roll_offs: RollOffMark = NO_ROLL_OFF
    previous: str = ""

    def body(self) -> dict[str, Any]:
        """What is signed: plain JSON data."""
        return {
            "workspace": self.workspace,
            "at": format_timestamp(self.at),
            "versions": dict(vars(self.versions)),
            "label_moves": dict(vars(self.label_moves)),
            "ledger": self.ledger._asdict(),
            "roll_offs": self.roll_offs._asdict(),
            "previous": self.previous,
        }

    def sums_up(self, heads: ChainHeads) -> bool:
        """Whether these are all the heads that the checkpoint speaks of."""
        return heads.is_whole and heads.sums() == (self.versions, self.label_moves)


def read_checkpoint(body: object) -> CheckpointStatement:
    """The checkpoint a body states; ValueError when it is not the very body such a checkpoint has."""
    said = read_object(body, "the checkpoint")
    made = CheckpointStatement(
        workspace=read_number(said.get("workspace"), "the checkpoint's workspace"),
        at=read_json_timestamp(said.get("at"), "the checkpoint's time"),
        versions=read_record(HeadsSummary, said.get("versions"), "the checkpoint's versions"),
        label_moves=read_record(HeadsSummary, said.get("label_moves"), "the checkpoint's label moves"),
        ledger=read_record(LedgerMark, said.get("ledger"), "the checkpoint's ledger"),
        roll_offs=read_record(RollOffMark, said.get("roll_offs"), "the checkpoint's roll-offs"),
        previous=read_text(said.get("previous"), "the checkpoint's previous"),
    )
    # One comparison finds all stray keys.
    if canonical_json(made.body()) != canonical_json(said):
        raise ValueError("the checkpoint says more than a checkpoint has to say")
    return made


@dataclass(frozen=True)
class SignedCheckpoint:
    """A checkpoint's body, the signature over it in Base64, the id of the key that made it, and its heads."""

    body: Mapping[str, Any]
    signature: str
    key: str
    heads: Mapping[str, Any] = field(default_factory=lambda: ChainHeads().data())

    @property
    def hash(self) -> str:
        """What the next checkpoint calls its previous."""
        return canonical_digest(CHECKPOINT_DOMAIN, self.body)


def sign_statement(
    checkpoint: CheckpointStatement, private_key: PrivateKey, heads: ChainHeads | None = None
) -> SignedCheckpoint:
    body = checkpoint.body()
    signature = b64encode(private_key.sign(build_digest_message(CHECKPOINT_DOMAIN, body))).decode()
    return SignedCheckpoint(
        body, signature, get_key_id(private_key.public_key()), (heads or ChainHeads()).data()
    )


def verify_signature(signed: SignedCheckpoint, public_key: PublicKey) -> bool:
    """Whether this key signed this body; False too for what is no signature at all."""
    try:
        signature = b64decode(signed.signature, validate=True)
        public_key.verify(signature, build_digest_message(CHECKPOINT_DOMAIN, signed.body))
    except (InvalidSignature, ValueError, TypeError):
        return False
    # Base64 can spell the same bytes in several ways; a signature has one.
    return b64encode(signature).decode() == signed.signature and signed.key == get_key_id(public_key)


def read_signed_checkpoint(data: object) -> SignedCheckpoint:
    made = read_record(SignedCheckpoint, data, "the signed checkpoint")
    read_checkpoint(made.body)
    read_heads(made.heads)
    return made


def format_checkpoint_line(signed: SignedCheckpoint) -> str:
    """One line of the file that holds a second copy."""
    return canonical_json(vars(signed)).decode() + "\n"


def read_checkpoint_lines(lines: Iterable[str]) -> Iterator[SignedCheckpoint | Fault]:
    """The checkpoints in such a file, line by line; a line that cannot be read is a fault, not the end."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield read_signed_checkpoint(parse_strict_json(line))
        except ValueError as error:
            yield Fault(
                "checkpoint-file", f"line {number} of the checkpoint file", f"it cannot be read: {error}"
            )
