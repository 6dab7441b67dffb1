"""Verify the ledger: the seals of rows, the blocks that cover rows, and the expiries of expired blocks."""

from collections.abc import Iterator
from typing import Any

from personas.models import Workspace
from prompts.evidence.integrity.verify.call_contents import CallContentVerifier
from prompts.evidence.integrity.verify.row_stream import (
    CHUNK_SIZE,
    READ_ERRORS,
    VersionNumbers,
    WorkspacePrompts,
    iterate_chunks,
    iterate_rows,
)
from prompts.evidence.ledger.retention import MIN_MONTHS, subtract_months
from prompts.models import LedgerBlock, LedgerEntry, LedgerExpiry
from prompts.proof.canonical import json_digest
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import ExpiryRow, LedgerBlockRow, LedgerRow, StoredRow
from prompts.proof.ledger_blocks import SealedRow
from prompts.proof_rows import RowLike, build_block_row, build_expiry_row, build_ledger_row

ENTRY_COLUMNS = (
    *("workspace_id", "key_id", "user_id", "reader_label", "prompt_id", "label", "version_id", "slots"),
    *("served_digest", "size", "status", "request_id", "at", "seal", "skill"),
)
BLOCK_COLUMNS = (
    *("workspace_id", "sequence", "first_id", "last_id", "count", "rows", "first_at", "last_at", "at"),
    *("previous_hash", "hash"),
)
# The longest retention period that can be configured.
MAX_MONTHS = 1_200
EXPIRY_COLUMNS = (
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
    workspace: Workspace, prompts: WorkspacePrompts, numbers: VersionNumbers, contents: CallContentVerifier
) -> Iterator[SealedRow]:
    """Yield ledger rows with their stored seals, ordered by id, and collect the call contents they name."""
    rows = LedgerEntry.objects.in_workspace(workspace).order_by("id")
    for chunk in iterate_chunks(
        iterate_rows(rows, ENTRY_COLUMNS, LedgerRow.table, timestamp_text="at"), CHUNK_SIZE
    ):
        numbers.load(row.version_id for row in chunk if not isinstance(row, Fault))
        for row in chunk:
            if isinstance(row, Fault):
                yield row
                continue
            contents.add_row(row)
            yield build_sealed_row(row, prompts, numbers)


def build_sealed_row(row: RowLike, prompts: WorkspacePrompts, numbers: VersionNumbers) -> SealedRow:
    number = numbers.get_number(row.version_id, row.prompt_id) or 0
    try:
        return build_ledger_row(row, prompts.get_key(row.prompt_id), number, json_digest), row.seal
    except READ_ERRORS as error:
        return Fault(LedgerRow.table, f"ledger row {row.id}", f"its content cannot be hashed: {error}")


def iterate_stored_blocks(workspace: Workspace) -> Iterator[StoredRow[LedgerBlockRow] | Fault]:
    rows = LedgerBlock.objects.in_workspace(workspace).order_by("sequence")
    for row in iterate_rows(rows, BLOCK_COLUMNS, LedgerBlockRow.table):
        yield row if isinstance(row, Fault) else (build_block_row(row), row.hash, row.previous_hash)


def iterate_block_rows(workspace: Workspace) -> Iterator[LedgerBlockRow]:
    return (stored[0] for stored in iterate_stored_blocks(workspace) if not isinstance(stored, Fault))


class ExpiryVerifier:
    """Verify expiries (deletions of expired blocks): each must match its block and the retention period."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        # Sequence of the last expired block: rows of this block and of earlier blocks may be missing.
        self.last_block = 0
        self.early_faults: list[Fault] = []

    def iterate_stored_expiries(self) -> Iterator[StoredRow[ExpiryRow] | Fault]:
        rows = LedgerExpiry.objects.in_workspace(self.workspace).order_by("id")
        for chunk in iterate_chunks(iterate_rows(rows, EXPIRY_COLUMNS, ExpiryRow.table), CHUNK_SIZE):
            blocks = self.get_blocks(chunk)
            for row in chunk:
                yield (
                    row if isinstance(row, Fault) else self.build_stored_expiry(row, blocks.get(row.block_id))
                )

    def get_blocks(self, chunk: list[Any]) -> dict[int, LedgerBlock]:
        ids = [row.block_id for row in chunk if not isinstance(row, Fault)]
        return LedgerBlock.objects.in_workspace(self.workspace).in_bulk(ids)

    def build_stored_expiry(self, row: RowLike, block: LedgerBlock | None) -> StoredRow[ExpiryRow]:
        expiry = build_expiry_row(row, block.sequence if block else 0)
        self.last_block = max(self.last_block, expiry.block)
        if block and not is_expiry_due(row, block):
            self.early_faults.append(
                Fault(expiry.table, expiry.name, ("its rows were deleted before the retention period ended"))
            )
        return expiry, row.hash, row.previous_hash


def is_expiry_due(expiry: RowLike, block: LedgerBlock) -> bool:
    """Whether the expiry covers exactly this block, and the block's retention period had ended by then."""
    covers_block = (expiry.first_id, expiry.last_id) == (block.first_id, block.last_id)
    return (
        covers_block
        and MIN_MONTHS <= expiry.months <= MAX_MONTHS
        and block.last_at < subtract_months(expiry.at, expiry.months)
    )
