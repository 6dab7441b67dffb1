"""The ledger: every seal, every block over its rows, every block that was let go, and when."""

from collections.abc import Iterator
from typing import Any

from personas.models import Workspace
from prompts.hashed_rows import RowLike, build_block_row, build_ledger_row, build_roll_off_row
from prompts.integrity.verify.row_stream import (
    CHUNK_SIZE,
    READ_ERRORS,
    VersionNumbers,
    WorkspacePrompts,
    iterate_chunks,
    iterate_rows,
)
from prompts.ledger.retention import MIN_MONTHS, subtract_months
from prompts.models import LedgerBlock, LedgerEntry, LedgerRollOff
from prompts.proof.canonical import json_digest
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import LedgerBlockRow, LedgerRow, RollOffRow, StoredRow
from prompts.proof.ledger_blocks import SealedRow

ENTRY_COLUMNS = (
    *("workspace_id", "key_id", "user_id", "reader_label", "prompt_id", "label", "version_id", "slots"),
    *("served_digest", "size", "status", "request_id", "at", "seal"),
)
BLOCK_COLUMNS = (
    *("workspace_id", "sequence", "first_id", "last_id", "count", "rows", "first_at", "last_at", "at"),
    *("previous_hash", "hash"),
)
# As many months as can be asked for.
MAX_MONTHS = 1_200
ROLL_OFF_COLUMNS = (
    "workspace_id",
    "block_id",
    "first_id",
    "last_id",
    "months",
    "at",
    "previous_hash",
    "hash",
)


def iterate_sealed_rows(
    workspace: Workspace, prompts: WorkspacePrompts, numbers: VersionNumbers
) -> Iterator[SealedRow]:
    """By id, with their stored seals."""
    rows = LedgerEntry.objects.in_workspace(workspace).order_by("id")
    for chunk in iterate_chunks(iterate_rows(rows, ENTRY_COLUMNS, LedgerRow.table, spelled="at"), CHUNK_SIZE):
        numbers.learn(row.version_id for row in chunk if not isinstance(row, Fault))
        for row in chunk:
            yield row if isinstance(row, Fault) else build_sealed_row(row, prompts, numbers)


def build_sealed_row(row: RowLike, prompts: WorkspacePrompts, numbers: VersionNumbers) -> SealedRow:
    number = numbers.of(row.version_id, row.prompt_id) or 0
    try:
        return build_ledger_row(row, prompts.line(row.prompt_id), number, json_digest), row.seal
    except READ_ERRORS as error:
        return Fault(LedgerRow.table, f"ledger row {row.id}", f"its content cannot be hashed: {error}")


def iterate_stored_blocks(workspace: Workspace) -> Iterator[StoredRow[LedgerBlockRow] | Fault]:
    rows = LedgerBlock.objects.in_workspace(workspace).order_by("sequence")
    for row in iterate_rows(rows, BLOCK_COLUMNS, LedgerBlockRow.table):
        yield row if isinstance(row, Fault) else (build_block_row(row), row.hash, row.previous_hash)


def iterate_block_rows(workspace: Workspace) -> Iterator[LedgerBlockRow]:
    return (each[0] for each in iterate_stored_blocks(workspace) if not isinstance(each, Fault))


class RollOffVerifier:
    """The notes that blocks were let go, in their order, each held against its block."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        # The last block that may have lost its rows.
        self.last = 0
        self.untimely: list[Fault] = []

    def stored(self) -> Iterator[StoredRow[RollOffRow] | Fault]:
        rows = LedgerRollOff.objects.in_workspace(self.workspace).order_by("id")
        for chunk in iterate_chunks(iterate_rows(rows, ROLL_OFF_COLUMNS, RollOffRow.table), CHUNK_SIZE):
            blocks = self.blocks_of(chunk)
            for row in chunk:
                yield row if isinstance(row, Fault) else self.proved(row, blocks.get(row.block_id))

    def blocks_of(self, chunk: list[Any]) -> dict[int, LedgerBlock]:
        ids = [row.block_id for row in chunk if not isinstance(row, Fault)]
        return LedgerBlock.objects.in_workspace(self.workspace).in_bulk(ids)

    def proved(self, row: RowLike, block: LedgerBlock | None) -> StoredRow[RollOffRow]:
        made = build_roll_off_row(row, block.sequence if block else 0)
        self.last = max(self.last, made.block)
        if block and not is_roll_off_due(row, block):
            self.untimely.append(Fault(made.table, made.name, "its rows were let go before their time"))
        return made, row.hash, row.previous_hash


def is_roll_off_due(note: RowLike, block: LedgerBlock) -> bool:
    """Whether the note speaks of just this block, which had outlived the months that it names."""
    span = (note.first_id, note.last_id) == (block.first_id, block.last_id)
    return (
        span
        and MIN_MONTHS <= note.months <= MAX_MONTHS
        and block.last_at < subtract_months(note.at, note.months)
    )
