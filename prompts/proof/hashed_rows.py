"""The hashed columns of every append-only table, as one frozen dataclass per table.

The field names are part of the hashes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from prompts.proof.canonical import canonical_digest

R = TypeVar("R", bound="ChainedRow")
# A row with its stored hash and the stored hash of the previous row.
StoredRow = tuple[R, str, str]
# Domains of the values that rows contain only as a digest.
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

    def get_hashed_columns(self) -> Mapping[str, Any]:
        return vars(self)


class ChainedRow(HashedRow):
    """A row of a hash chain: its hash covers the hash of the previous row."""

    @property
    def chain(self) -> tuple[int | None, ...]:
        """The key of the chain that the row belongs to."""
        raise NotImplementedError

    @property
    def place(self) -> int:
        """The position in the chain, starting at 1."""
        raise NotImplementedError

    def format_name(self, place: int) -> str:
        """Format the display name of the row at this place of the same chain."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.format_name(self.place)

    def hash(self, previous: str) -> str:
        """Return the hash of the row; for the first row of a chain, `previous` is empty."""
        return canonical_digest(self.table, {"previous": previous, "row": self.get_hashed_columns()})


@dataclass(frozen=True)
class VersionRow(ChainedRow):
    """A version of a prompt; texts are hashed by their digest, so that they can be erased."""

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

    def format_name(self, place: int) -> str:
        return format_version_name(self.agent, self.channel, place)


@dataclass(frozen=True)
class LabelMoveRow(ChainedRow):
    """A move of a label of a prompt to a version, or to none.

    Versions are hashed by id and number: without the number, two versions could swap their ids undetected.
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

    def format_name(self, place: int) -> str:
        return format_move_name(self.agent, self.channel, place)


@dataclass(frozen=True)
class LedgerBlockRow(ChainedRow):
    """A closed span of the ledger; `rows` is the digest over its ids and seals."""

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

    def format_name(self, place: int) -> str:
        return f"ledger block {place}"


@dataclass(frozen=True)
class RollOffRow(ChainedRow):
    """A ledger block whose rows were deleted after the retention period; blocks expire in order."""

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

    def format_name(self, place: int) -> str:
        return f"roll-off of ledger block {place}"


@dataclass(frozen=True)
class LedgerRow(HashedRow):
    """A served prompt; `served` is the plain SHA-256 of its bytes."""

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

    def get_hashed_columns(self) -> Mapping[str, Any]:
        # The seal is computed before the row is stored and has an id; the block binds the id to the seal.
        columns = dict(vars(self))
        del columns["id"]
        return columns

    def seal(self) -> str:
        return canonical_digest(self.table, self.get_hashed_columns())


def ledger_rows_digest(pairs: Iterable[tuple[int, str]]) -> str:
    """Return the digest of a block's rows: over the (id, seal) pairs in order of id."""
    return canonical_digest(LEDGER_ROWS_DOMAIN, tuple(pairs))


def format_version_name(agent: int, channel: int | None, number: int) -> str:
    return f"version {number} of {format_chain_name(agent, channel)}"


def format_move_name(agent: int, channel: int | None, sequence: int) -> str:
    return f"label move {sequence} of {format_chain_name(agent, channel)}"


def format_chain_name(agent: int, channel: int | None) -> str:
    where = "without a channel" if channel is None else f"on channel {channel}"
    return f"agent {agent} {where}"
