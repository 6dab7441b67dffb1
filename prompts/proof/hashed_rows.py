"""The hashed columns of every append-only table, as one frozen dataclass per table.

The hashes cover the field names, so renaming a field would invalidate all stored hashes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from prompts.proof.canonical import canonical_digest

R = TypeVar("R", bound="ChainedRow")
# A row with its stored hash and the stored hash of the previous row.
StoredRow = tuple[R, str, str]
# Digest domains (see `canonical_digest`) of values that rows contain only as a digest.
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
        return self.to_json()

    def to_json(self) -> Mapping[str, Any]:
        """Return the columns as evidence bundles contain them."""
        return vars(self)


def drop_column(columns: Mapping[str, Any], name: str, empty: Any) -> Mapping[str, Any]:
    """Leave out a column that has exactly this value: bundles and rows without the column hash alike."""
    value = columns[name]
    if type(value) is not type(empty) or value != empty:
        return columns
    return {key: value for key, value in columns.items() if key != name}


class ChainedRow(HashedRow):
    """A row of a hash chain. Its hash covers its columns and the hash of the previous row."""

    @property
    def chain(self) -> tuple[int | None, ...]:
        """The ids that identify the chain of the row, for example workspace, agent and channel."""
        raise NotImplementedError

    @property
    def place(self) -> int:
        """The position in the chain, starting at 1."""
        raise NotImplementedError

    def format_name(self, place: int) -> str:
        """Format the display name of the row at the given place in the chain of this row."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.format_name(self.place)

    def hash(self, previous: str) -> str:
        """Return the hash of the row. `previous` is the hash of the previous row, empty for the first row."""
        return canonical_digest(self.table, {"previous": previous, "row": self.get_hashed_columns()})


class PromptChainRow(ChainedRow):
    """A row of one of the hash chains of a prompt: an agent on a channel."""

    workspace: int
    agent: int
    channel: int | None

    @property
    def chain(self) -> tuple[int | None, ...]:
        return self.workspace, self.agent, self.channel


class WorkspaceChainRow(ChainedRow):
    """A row of one of the hash chains of a workspace."""

    workspace: int

    @property
    def chain(self) -> tuple[int | None, ...]:
        return (self.workspace,)


@dataclass(frozen=True)
class VersionRow(PromptChainRow):
    """A version of a prompt.

    The row contains texts only as digests, so that a text can be erased without changing the hash.
    """

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
    # Name, content digest, size and origin of each skill file.
    skill_files: Sequence[Any] = field(default_factory=list)

    def to_json(self) -> Mapping[str, Any]:
        return drop_column(vars(self), "skill_files", [])

    @property
    def place(self) -> int:
        return self.number

    def format_name(self, place: int) -> str:
        return format_version_name(self.agent, self.channel, place)


@dataclass(frozen=True)
class LabelMoveRow(PromptChainRow):
    """A move of a label of a prompt to another version, or to no version.

    The row names each version by id and number. Without the number, two versions could swap their ids
    undetected.
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
    def place(self) -> int:
        return self.sequence

    def format_name(self, place: int) -> str:
        return format_move_name(self.agent, self.channel, place)


@dataclass(frozen=True)
class LedgerBlockRow(WorkspaceChainRow):
    """A closed span of ledger rows. `rows` is the digest of the ids and seals of these rows."""

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
    def place(self) -> int:
        return self.sequence

    def format_name(self, place: int) -> str:
        return f"ledger block {place}"


@dataclass(frozen=True)
class ExpiryRow(WorkspaceChainRow):
    """The record that the rows of a ledger block were deleted after the retention period of `months` months.

    The rows of blocks are deleted in the order of the blocks.
    """

    table = "expiry"

    workspace: int
    block: int
    first_id: int
    last_id: int
    months: int
    at: datetime

    @property
    def place(self) -> int:
        return self.block

    def format_name(self, place: int) -> str:
        return f"expiry of ledger block {place}"


@dataclass(frozen=True)
class LedgerRow(HashedRow):
    """One fetch of a prompt or of a skill file. `served` is the salted digest of the returned bytes."""

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
    # The name of the skill whose file was returned; None if it was the prompt.
    skill: str | None = None

    @property
    def name(self) -> str:
        return f"ledger row {self.id}"

    def get_hashed_columns(self) -> Mapping[str, Any]:
        # The id is left out, because the seal is computed before the database assigns the id. The digest of
        # the block covers both id and seal.
        columns = dict(self.to_json())
        del columns["id"]
        return columns

    def to_json(self) -> Mapping[str, Any]:
        return drop_column(vars(self), "skill", None)

    def seal(self) -> str:
        return canonical_digest(self.table, self.get_hashed_columns())


def ledger_rows_digest(pairs: Iterable[tuple[int, str]]) -> str:
    """Return the digest of the rows of a block, given as (id, seal) pairs in order of id."""
    return canonical_digest(LEDGER_ROWS_DOMAIN, tuple(pairs))


def format_version_name(agent: int, channel: int | None, number: int) -> str:
    return f"version {number} of {format_chain_name(agent, channel)}"


def format_move_name(agent: int, channel: int | None, sequence: int) -> str:
    return f"label move {sequence} of {format_chain_name(agent, channel)}"


def format_chain_name(agent: int, channel: int | None) -> str:
    where = "without a channel" if channel is None else f"on channel {channel}"
    return f"agent {agent} {where}"
