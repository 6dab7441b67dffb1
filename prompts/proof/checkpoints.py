"""Signed statements of how far a workspace's chains had grown, each naming the statement before it."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from prompts.proof.canonical import canonical, digest, message, moment, read_json
from prompts.proof.faults import Fault
from prompts.proof.keys import Ed25519PrivateKey, Ed25519PublicKey, InvalidSignature, key_id
from prompts.proof.reading import read_list, read_record, read_text

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


@dataclass(frozen=True)
class Checkpoint:
    """One workspace at one time; `previous` is the hash of its checkpoint before this one."""

    workspace: int
    at: datetime
    heads: tuple[Head, ...] = ()
    label_moves: Mark = Mark()
    ledger: LedgerMark = LedgerMark()
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
