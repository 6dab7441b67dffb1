"""The append-only tables of a history in memory, each with the function that verifies its rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from personas.models import Workspace
from prompts.evidence.integrity.verify import checkpoint_verifier, label_moves, ledger, parts, versions
from prompts.evidence.integrity.verify.row_stream import VersionNumbers, WorkspacePrompts, iterate_rows
from prompts.models import (
    Checkpoint,
    LabelMove,
    LedgerBlock,
    LedgerEntry,
    LedgerExpiry,
    PromptVersion,
    SigningKey,
    VersionPart,
)
from prompts.proof.chains import iterate_chain_faults
from prompts.proof.faults import Fault
from prompts.proof.ledger_blocks import iterate_ledger_faults
from prompts.proof_rows import build_block_row

Rows = list[Any]
# Columns that no hash covers, with the reason.
UNCOVERED = {
    (
        "prompts_promptversion",
        "id",
    ): "assigned by the database after the hash; references include the number too",
    ("prompts_ledgerentry", "traceparent"): "stated by the client, and beside the sealed values",
    ("prompts_labelmove", "id"): "assigned by the database after the hash; never referenced",
    ("prompts_ledgerblock", "id"): "assigned by the database after the hash; expiries use the sequence too",
    ("prompts_ledgerexpiry", "id"): "assigned by the database after the hash; never referenced",
    ("prompts_checkpoint", "id"): "assigned by the database after the signature; never referenced",
    ("prompts_signingkey", "id"): "assigned by the database; never referenced",
    ("prompts_versionpart", "id"): "assigned by the database; never referenced",
    ("prompts_versionpart", "workspace_id"): "a row moved to another workspace is reported as missing",
    ("prompts_signingkey", "workspace_id"): "a row moved to another workspace is reported as missing",
}


# The model, the columns and the order of the rows of each table.
SOURCES: dict[str, tuple[Any, ...]] = {
    "prompts_promptversion": (PromptVersion, versions.COLUMNS, "prompt_id", "number"),
    "prompts_versionpart": (VersionPart, parts.COLUMNS, "id"),
    "prompts_labelmove": (LabelMove, label_moves.COLUMNS, "prompt_id", "sequence"),
    "prompts_ledgerentry": (LedgerEntry, ledger.ENTRY_COLUMNS, "id"),
    "prompts_ledgerblock": (LedgerBlock, ledger.BLOCK_COLUMNS, "sequence"),
    "prompts_ledgerexpiry": (LedgerExpiry, ledger.EXPIRY_COLUMNS, "id"),
    "prompts_checkpoint": (Checkpoint, checkpoint_verifier.CHECKPOINT_COLUMNS, "sequence"),
    "prompts_signingkey": (SigningKey, checkpoint_verifier.KEY_COLUMNS, "id"),
}


@dataclass
class Table:
    """Streamed rows, with the functions that verify and name them."""

    name: str
    rows: Rows
    judge: Callable[[Rows], Iterator[Fault | None]]
    named: Callable[[Any], str]

    @property
    def columns(self) -> list[str]:
        return [name for name in self.rows[0]._fields if (self.name, name) not in UNCOVERED]

    def first_fault(self, rows: Rows) -> Fault | None:
        return next(filter(None, self.judge(rows)), None)


class Tables:
    """All tables, read once: verification then runs without queries."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.prompts, self.numbers = WorkspacePrompts(workspace), VersionNumbers(workspace)
        self.versions = self.read_again("prompts_promptversion")
        self.parts = self.read_again("prompts_versionpart")
        self.moves = self.read_again("prompts_labelmove")
        self.entries = self.read_again("prompts_ledgerentry")
        self.blocks = self.read_again("prompts_ledgerblock")
        self.notes = self.read_again("prompts_ledgerexpiry")
        self.checkpoints = self.read_again("prompts_checkpoint")
        self.keys = self.read_again("prompts_signingkey")
        self.numbers.load(row.id for row in self.versions)
        self.by_id = LedgerBlock.objects.in_workspace(workspace).in_bulk()

    def read(self, model: Any, columns: tuple[str, ...], *order: str) -> Rows:
        rows = model.objects.in_workspace(self.workspace).order_by(*order)
        return list(iterate_rows(rows, columns, model._meta.db_table))

    def read_again(self, name: str) -> Rows:
        """Read the rows of one table again, as verification streams them from the database."""
        model, columns, *order = SOURCES[name]
        return self.read(model, columns, *order)

    def all(self) -> list[Table]:
        return [
            Table("prompts_promptversion", self.versions, self.judge_versions, self.version_name),
            Table("prompts_versionpart", self.parts, self.judge_parts, lambda row: "the index of"),
            Table("prompts_labelmove", self.moves, self.judge_moves, self.move_name),
            Table(
                "prompts_ledgerentry", self.entries, self.judge_entries, lambda row: f"ledger row {row.id}"
            ),
            Table("prompts_ledgerblock", self.blocks, self.judge_blocks, lambda row: f"block {row.sequence}"),
            Table("prompts_ledgerexpiry", self.notes, self.judge_notes, lambda row: "expiry of"),
            Table("prompts_checkpoint", self.checkpoints, self.judge_checkpoints, lambda row: "checkpoint"),
            Table("prompts_signingkey", self.keys, self.judge_keys, lambda row: "signing key"),
        ]

    # --- verification -----------------------------------------------------------------------------------

    def judge_versions(self, rows: Rows) -> Iterator[Fault | None]:
        verifier = versions.VersionVerifier(self.workspace, self.prompts)
        yield from iterate_chain_faults(
            versions.build_stored_version(row, self.prompts, verifier) for row in rows
        )
        yield from verifier.find_end_faults()

    def judge_parts(self, rows: Rows) -> Iterator[Fault | None]:
        verifier = versions.VersionVerifier(self.workspace, self.prompts)
        for row in self.versions:
            verifier.check_version(row)
        for row in rows:
            verifier.parts.sums[row.prompt_id] -= verifier.parts.hash_part(*row[1:])
        yield from (
            Fault(parts.TABLE, "the index of", "") for remainder in verifier.parts.sums.values() if remainder
        )

    def judge_moves(self, rows: Rows) -> Iterator[Fault | None]:
        verifier = label_moves.LabelMoveVerifier(self.workspace, self.prompts, self.numbers)
        yield from iterate_chain_faults(verifier.build_stored_moves(rows))
        yield from verifier.find_end_faults()

    def judge_entries(self, rows: Rows) -> Iterator[Fault | None]:
        sealed = (ledger.build_sealed_row(row, self.prompts, self.numbers) for row in rows)
        return iterate_ledger_faults(map(build_block_row, self.blocks), sealed, last_expired=1)

    def judge_blocks(self, rows: Rows) -> Iterator[Fault | None]:
        return iterate_chain_faults((build_block_row(row), row.hash, row.previous_hash) for row in rows)

    def judge_notes(self, rows: Rows) -> Iterator[Fault | None]:
        verifier = ledger.ExpiryVerifier(self.workspace)
        return iterate_chain_faults(
            verifier.build_stored_expiry(row, self.by_id.get(row.block_id)) for row in rows
        )

    def judge_checkpoints(self, rows: Rows) -> Iterator[Fault | None]:
        return self.judge_signed(self.keys, rows)

    def judge_keys(self, rows: Rows) -> Iterator[Fault | None]:
        return self.judge_signed(rows, self.checkpoints)

    def judge_signed(self, keys: Rows, rows: Rows) -> Iterator[Fault | None]:
        verifier = checkpoint_verifier.CheckpointVerifier(self.workspace, self.prompts)
        yield from map(verifier.find_key_fault, keys)
        yield from verifier.verify_rows(rows)
        yield from verifier.find_unused_keys()

    # --- names ------------------------------------------------------------------------------------------

    def version_name(self, row: Any) -> str:
        return f"version {row.number} of agent {self.prompts.get_key(row.prompt_id).agent} "

    def move_name(self, row: Any) -> str:
        return f"label move {row.sequence} of agent {self.prompts.get_key(row.prompt_id).agent} "
