"""What is hashed of every append-only table: one frozen row each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from prompts.proof.canonical import canonical_digest

# Stored beside a row: its hash, and the hash of the row before it.
R = TypeVar("R", bound="ChainedRow")
StoredRow = tuple[R, str, str]
# What else is digested; the rows name it by its digest only.
SEGMENTS_DOMAIN, SIZES_DOMAIN, LOCKFILE_DOMAIN, SLOTS_DOMAIN, LEDGER_ROWS_DOMAIN = (
    "segments",
    "sizes",
    "lockfile",
    "slots",
    "ledger-rows",
)


class HashedRow:
    """The columns of a stored row that its hash covers."""

    table: ClassVar[str]

    def covered(self) -> Mapping[str, Any]:
        return vars(self)


class ChainedRow(HashedRow):
    """A row with a place in a chain, whose hash covers the hash of the row before it."""

    @property
    def chain(self) -> tuple[int | None, ...]:
        """Which chain the row belongs to."""
        raise NotImplementedError

    @property
    def place(self) -> int:
        """1, 2, 3 and so on in its chain."""
        raise NotImplementedError

    def named(self, place: int) -> str:
        """What a person calls the row at this place of the same chain."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.named(self.place)

    def hash(self, previous: str) -> str:
        """The row's hash; the first row of a chain follows the empty text."""
        return canonical_digest(self.table, {"previous": previous, "row": self.covered()})


@dataclass(frozen=True)
class VersionRow(ChainedRow):
    """A version of agent × channel; words are covered by their digests, so that they can be erased."""

    table = "version"

    workspace: int
    agent: int
    channel: int | None
    number: int
    digest: str
    segments: str
    text: str
    tools: str
    sizes: str
    lockfile: str
    report: str
    layout: str
    compiler: str
    causes: Sequence[Any]
    author: str
    message: str
    at: datetime

    @property
    def chain(self) -> tuple[int | None, ...]:
        return self.workspace, self.agent, self.channel

    @property
    def place(self) -> int:
        return self.number

    def named(self, place: int) -> str:
        return format_version_name(self.agent, self.channel, place)


@dataclass(frozen=True)
class LabelMoveRow(ChainedRow):
    """A label of agent × channel that was pointed at a version, or at none.

    Versions by id and number: without the number two versions could exchange their ids.
    """

    table = "label-move"

    workspace: int
    agent: int
    channel: int | None
    sequence: int
    label: str
    version: int | None
    number: int | None
    previous_version: int | None
    previous_number: int | None
    reason: str
    note: str
    release: int | None
    author: str
    at: datetime

    @property
    def chain(self) -> tuple[int | None, ...]:
        return self.workspace, self.agent, self.channel

    @property
    def place(self) -> int:
        return self.sequence

    def named(self, place: int) -> str:
        return format_move_name(self.agent, self.channel, place)


@dataclass(frozen=True)
class LedgerBlockRow(ChainedRow):
    """A stretch of the ledger, closed: `rows` is the digest over the ids and seals in it."""

    table = "ledger-block"

    workspace: int
    sequence: int
    first_id: int
    last_id: int
    count: int
    rows: str
    first_at: datetime
    last_at: datetime
    at: datetime

    @property
    def chain(self) -> tuple[int | None, ...]:
        return (self.workspace,)

    @property
    def place(self) -> int:
        return self.sequence

    def named(self, place: int) -> str:
        return f"ledger block {place}"


@dataclass(frozen=True)
class RollOffRow(ChainedRow):
    """A block whose rows were let go when their months were over; blocks go in their order."""

    table = "roll-off"

    workspace: int
    block: int
    first_id: int
    last_id: int
    months: int
    at: datetime

    @property
    def chain(self) -> tuple[int | None, ...]:
        return (self.workspace,)

    @property
    def place(self) -> int:
        return self.block

    def named(self, place: int) -> str:
        return f"roll-off of ledger block {place}"


@dataclass(frozen=True)
class LedgerRow(HashedRow):
    """A prompt that was handed out; `served` is the plain SHA-256 of its bytes."""

    table = "ledger-row"

    workspace: int
    id: int
    key: str
    agent: int
    channel: int | None
    label: str
    version: int
    number: int
    slots: str
    served: str
    size: int
    status: int
    request_id: str
    at: datetime

    @property
    def name(self) -> str:
        return f"ledger row {self.id}"

    def covered(self) -> Mapping[str, Any]:
        # Sealed before it is stored, when no id is known yet: the block binds the id to the seal.
        rest = dict(vars(self))
        del rest["id"]
        return rest

    def seal(self) -> str:
        return canonical_digest(self.table, self.covered())


def ledger_rows_digest(pairs: Iterable[tuple[int, str]]) -> str:
    """What a block says of its rows: the digest over (id, seal) in the order of the ids."""
    return canonical_digest(LEDGER_ROWS_DOMAIN, tuple(pairs))


def format_version_name(agent: int, channel: int | None, number: int) -> str:
    return f"version {number} of {format_chain_name(agent, channel)}"


def format_move_name(agent: int, channel: int | None, sequence: int) -> str:
    return f"label move {sequence} of {format_chain_name(agent, channel)}"


def format_chain_name(agent: int, channel: int | None) -> str:
    where = "without a channel" if channel is None else f"on channel {channel}"
    return f"agent {agent} {where}"
