"""The ledger: every seal, every block over its rows, every block that was let go, and when."""

from collections.abc import Iterator
from typing import Any

from personas.models import Workspace
from prompts.hashed_rows import Columns, block_row, ledger_row, roll_off_row
from prompts.integrity.verify.row_stream import CHUNK, UNREADABLE, Numbers, Prompts, chunks, each_row
from prompts.ledger.retention import FLOOR, months_before
from prompts.models import LedgerBlock, LedgerEntry, LedgerRollOff
from prompts.proof.canonical import json_digest
from prompts.proof.faults import Fault
from prompts.proof.hashed_rows import LedgerBlockRow, LedgerRow, RollOffRow, Stored
from prompts.proof.ledger_blocks import Sealed

ENTRY_COLUMNS = (
    *("workspace_id", "key_id", "user_id", "reader_label", "prompt_id", "label", "version_id", "slots"),
    *("served_digest", "size", "status", "request_id", "at", "seal"),
)
BLOCK_COLUMNS = (
    *("workspace_id", "sequence", "first_id", "last_id", "count", "rows", "first_at", "last_at", "at"),
    *("previous_hash", "hash"),
)
# As many months as can be asked for.
MOST = 1_200
NOTE_COLUMNS = ("workspace_id", "block_id", "first_id", "last_id", "months", "at", "previous_hash", "hash")


def sealed_rows(workspace: Workspace, prompts: Prompts, numbers: Numbers) -> Iterator[Sealed]:
    """By id, with their stored seals."""
    rows = LedgerEntry.objects.in_workspace(workspace).order_by("id")
    for chunk in chunks(each_row(rows, ENTRY_COLUMNS, LedgerRow.table, spelled="at"), CHUNK):
        numbers.learn(row.version_id for row in chunk if not isinstance(row, Fault))
        for row in chunk:
            yield row if isinstance(row, Fault) else proved(row, prompts, numbers)


def proved(row: Columns, prompts: Prompts, numbers: Numbers) -> Sealed:
    number = numbers.of(row.version_id, row.prompt_id) or 0
    try:
        return ledger_row(row, prompts.line(row.prompt_id), number, json_digest), row.seal
    except UNREADABLE as error:
        return Fault(LedgerRow.table, f"ledger row {row.id}", f"its content cannot be hashed: {error}")


def stored_blocks(workspace: Workspace) -> Iterator[Stored[LedgerBlockRow] | Fault]:
    rows = LedgerBlock.objects.in_workspace(workspace).order_by("sequence")
    for row in each_row(rows, BLOCK_COLUMNS, LedgerBlockRow.table):
        yield row if isinstance(row, Fault) else (block_row(row), row.hash, row.previous_hash)


def blocks_alone(workspace: Workspace) -> Iterator[LedgerBlockRow]:
    return (each[0] for each in stored_blocks(workspace) if not isinstance(each, Fault))


class RollOffs:
    """The notes that blocks were let go, in their order, each held against its block."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        # The last block that may have lost its rows.
        self.last = 0
        self.untimely: list[Fault] = []

    def stored(self) -> Iterator[Stored[RollOffRow] | Fault]:
        rows = LedgerRollOff.objects.in_workspace(self.workspace).order_by("id")
        for chunk in chunks(each_row(rows, NOTE_COLUMNS, RollOffRow.table), CHUNK):
            blocks = self.blocks_of(chunk)
            for row in chunk:
                yield row if isinstance(row, Fault) else self.proved(row, blocks.get(row.block_id))

    def blocks_of(self, chunk: list[Any]) -> dict[int, LedgerBlock]:
        ids = [row.block_id for row in chunk if not isinstance(row, Fault)]
        return LedgerBlock.objects.in_workspace(self.workspace).in_bulk(ids)

    def proved(self, row: Columns, block: LedgerBlock | None) -> Stored[RollOffRow]:
        made = roll_off_row(row, block.sequence if block else 0)
        self.last = max(self.last, made.block)
        if block and not is_timely(row, block):
            self.untimely.append(Fault(made.table, made.name, "its rows were let go before their time"))
        return made, row.hash, row.previous_hash


def is_timely(note: Columns, block: LedgerBlock) -> bool:
    """Whether the note speaks of just this block, which had outlived the months that it names."""
    span = (note.first_id, note.last_id) == (block.first_id, block.last_id)
    return span and FLOOR <= note.months <= MOST and block.last_at < months_before(note.at, note.months)
