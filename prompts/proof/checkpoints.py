"""Signed statements of how far a workspace's chains had grown, each naming the statement before it."""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature

from prompts.proof.canonical import canonical, digest, message, moment, read_json
from prompts.proof.faults import Fault
from prompts.proof.keys import PrivateKey, PublicKey, key_id
from prompts.proof.reading import read_list, read_moment, read_number, read_object, read_record, read_text

CHECKPOINT, HEADS = "checkpoint", "version-heads"


class Head(NamedTuple):
    """The newest version of agent × channel."""

    agent: int
    channel: int | None
    number: int
    hash: str


class Mark(NamedTuple):
    """The newest label move; before the first it is nought and empty."""

    sequence: int = 0
    hash: str = ""


class LedgerMark(NamedTuple):
    """The newest ledger block, and the last row in it."""

    sequence: int = 0
    hash: str = ""
    last_id: int = 0


NO_MOVE, NO_BLOCK = Mark(), LedgerMark()


@dataclass(frozen=True)
class Checkpoint:
    """One workspace at one time; `previous` is the hash of its checkpoint before this one."""

    workspace: int
    at: datetime
    heads: tuple[Head, ...] = ()
    label_moves: Mark = NO_MOVE
    ledger: LedgerMark = NO_BLOCK
    previous: str = ""

    def body(self) -> dict[str, Any]:
        """What is signed: plain JSON data."""
        heads = [list(head) for head in sorted(self.heads, key=order)]
        count = sum(head.number for head in self.heads)
        return {
            "workspace": self.workspace,
            "at": moment(self.at),
            "versions": {"count": count, "root": digest(HEADS, heads), "heads": heads},
            "label_moves": self.label_moves._asdict(),
            "ledger": self.ledger._asdict(),
            "previous": self.previous,
        }


def order(head: Head) -> tuple[int, int, int]:
    """By agent, then channel; what has no channel comes first."""
    return head.agent, head.channel is not None, head.channel or 0


def read_checkpoint(body: object) -> Checkpoint:
    """The checkpoint a body states; ValueError when it is not the very body such a checkpoint has."""
    said = read_object(body, "the checkpoint")
    versions = read_object(said.get("versions"), "the checkpoint's versions")
    heads = read_list(versions.get("heads"), "the checkpoint's heads")
    made = Checkpoint(
        workspace=read_number(said.get("workspace"), "the checkpoint's workspace"),
        at=read_moment(said.get("at"), "the checkpoint's time"),
        heads=tuple(read_head(head) for head in heads),
        label_moves=read_record(Mark, said.get("label_moves"), "the checkpoint's label moves"),
        ledger=read_record(LedgerMark, said.get("ledger"), "the checkpoint's ledger"),
        previous=read_text(said.get("previous"), "the checkpoint's previous"),
    )
    # Count and root follow from the heads: one comparison holds them, the order and stray keys to it.
    if canonical(made.body()) != canonical(said):
        raise ValueError(
            "the checkpoint contradicts itself: its count, root and heads do not belong together"
        )
    return made


def read_head(data: object) -> Head:
    where = "a head of the checkpoint"
    said = read_list(data, where)
    if len(said) != len(Head._fields):
        raise ValueError(f"{where} must be agent, channel, number and hash")
    return read_record(Head, dict(zip(Head._fields, said, strict=True)), where)


@dataclass(frozen=True)
class SignedCheckpoint:
    """A checkpoint's body, the signature over it in Base64, and the id of the key that made it."""

    body: Mapping[str, Any]
    signature: str
    key: str

    @property
    def hash(self) -> str:
        """What the next checkpoint calls its previous."""
        return digest(CHECKPOINT, self.body)


def sign(checkpoint: Checkpoint, private_key: PrivateKey) -> SignedCheckpoint:
    body = checkpoint.body()
    signature = private_key.sign(message(CHECKPOINT, body))
    return SignedCheckpoint(body, b64encode(signature).decode(), key_id(private_key.public_key()))


def verify_signature(signed: SignedCheckpoint, public_key: PublicKey) -> bool:
    """Whether this key signed this body; False too for what is no signature at all."""
    try:
        signature = b64decode(signed.signature, validate=True)
        public_key.verify(signature, message(CHECKPOINT, signed.body))
    except (InvalidSignature, ValueError):
        return False
    # Base64 can spell the same bytes in several ways; a signature has one.
    return b64encode(signature).decode() == signed.signature and signed.key == key_id(public_key)


def read_signed(data: object) -> SignedCheckpoint:
    made = read_record(SignedCheckpoint, data, "the signed checkpoint")
    read_checkpoint(made.body)
    return made


def checkpoint_line(signed: SignedCheckpoint) -> str:
    """One line of the file that holds a second copy."""
    return canonical(vars(signed)).decode() + "\n"


def read_checkpoint_lines(lines: Iterable[str]) -> Iterator[SignedCheckpoint | Fault]:
    """The checkpoints in such a file, line by line; a line that cannot be read is a fault, not the end."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield read_signed(read_json(line))
        except ValueError as error:
            yield Fault(
                "checkpoint-file", f"line {number} of the checkpoint file", f"it cannot be read: {error}"
            )
