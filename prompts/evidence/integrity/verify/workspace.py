"""Verify all tables of a workspace on one database snapshot."""

import time
from collections.abc import Iterable
from pathlib import Path

from personas.models import Workspace
from prompts.evidence.integrity.checkpoint_files import (
    get_checkpoint_file_size,
    read_checkpoint_copies,
    read_outside_copy,
)
from prompts.evidence.integrity.verify.call_contents import CallContentVerifier
from prompts.evidence.integrity.verify.checkpoint_verifier import CheckpointVerifier
from prompts.evidence.integrity.verify.contents import verify_contents
from prompts.evidence.integrity.verify.label_moves import LabelMoveVerifier
from prompts.evidence.integrity.verify.ledger import (
    ExpiryVerifier,
    iterate_block_rows,
    iterate_sealed_rows,
    iterate_stored_blocks,
)
from prompts.evidence.integrity.verify.results import ProgressCallback, WorkspaceVerification
from prompts.evidence.integrity.verify.row_stream import VersionNumbers, WorkspacePrompts, read_only_snapshot
from prompts.evidence.integrity.verify.versions import VersionVerifier, iterate_stored_versions
from prompts.proof.chains import iterate_chain_faults
from prompts.proof.faults import Fault
from prompts.proof.ledger_blocks import LedgerTimes, iterate_ledger_faults


def verify_workspace(
    workspace: Workspace, progress: ProgressCallback | None = None, outside_copy: Path | None = None
) -> WorkspaceVerification:
    """Recompute every version, label move, ledger row, block, expiry and checkpoint, with their contents.

    `outside_copy` is a file or folder with checkpoints that were kept elsewhere. They are compared with the
    stored ones.

    Call it outside a transaction: it then reads one snapshot, unaffected by concurrent writes.
    """
    started = time.monotonic()
    verification = WorkspaceVerification()
    # Measured before the snapshot: a checkpoint is copied to the file after its row is committed, so the
    # snapshot must contain a row for each line up to this size.
    size = get_checkpoint_file_size(workspace.pk)
    with read_only_snapshot():
        WorkspaceVerifier(workspace, verification, progress).verify_all(size, outside_copy)
    verification.seconds = time.monotonic() - started
    return verification


class WorkspaceVerifier:
    """Verify the tables in turn; data that several tables need is loaded once."""

    def __init__(
        self, workspace: Workspace, verification: WorkspaceVerification, progress: ProgressCallback | None
    ) -> None:
        self.workspace, self.verification, self.progress = workspace, verification, progress
        self.prompts, self.numbers = WorkspacePrompts(workspace), VersionNumbers(workspace)

    def verify_all(self, copy_size: int, outside_copy: Path | None) -> None:
        self.verify_versions()
        self.verify_contents()
        self.verify_label_moves()
        self.verify_ledger()
        self.verify_checkpoints(copy_size, outside_copy)

    def verify_versions(self) -> None:
        verifier = VersionVerifier(self.workspace, self.prompts)
        stored = iterate_stored_versions(self.workspace, self.prompts, verifier)
        self.verification.add_results("versions", iterate_chain_faults(stored), self.progress)
        verifier.find_missing_contents()
        self.add_faults(verifier.find_end_faults(), verifier.missing_contents)
        self.verification.add_results("version parts", verifier.parts.subtract_stored_rows(), self.progress)
        self.add_faults(verifier.parts.find_faults())

    def verify_contents(self) -> None:
        self.verification.add_results("contents", verify_contents(self.workspace), self.progress)

    def verify_label_moves(self) -> None:
        verifier = LabelMoveVerifier(self.workspace, self.prompts, self.numbers)
        self.verification.add_results(
            "label moves", iterate_chain_faults(verifier.iterate_stored_moves()), self.progress
        )
        self.add_faults(verifier.find_end_faults())
        self.verification.add_results("labels", verifier.verify_labels())

    def verify_ledger(self) -> None:
        expiries = ExpiryVerifier(self.workspace)
        self.verification.add_results("expiries", iterate_chain_faults(expiries.iterate_stored_expiries()))
        self.add_faults(expiries.early_faults)
        self.verification.add_results(
            "ledger blocks", iterate_chain_faults(iterate_stored_blocks(self.workspace))
        )
        contents = CallContentVerifier(self.workspace)
        rows = iterate_sealed_rows(self.workspace, self.prompts, self.numbers, contents)
        times = LedgerTimes()
        blocks = times.watch(iterate_block_rows(self.workspace))
        results = iterate_ledger_faults(blocks, rows, expiries.last_block)
        self.verification.add_results("ledger rows", results, self.progress)
        self.add_faults(times.list_faults())
        # iterate_ledger_faults yields results for blocks too, which are counted separately.
        self.verification.rows["ledger rows"] -= self.verification.rows["ledger blocks"]
        self.verification.add_results("call contents", contents.verify_stored(), self.progress)
        self.add_faults(contents.find_missing())

    def verify_checkpoints(self, copy_size: int, outside_copy: Path | None) -> None:
        verifier = CheckpointVerifier(self.workspace, self.prompts)
        self.verification.add_results("signing keys", verifier.verify_keys())
        self.verification.add_results("checkpoints", verifier.verify_checkpoints(), self.progress)
        self.add_faults(verifier.find_unused_keys())
        if copy_size:
            copies = read_checkpoint_copies(self.workspace.pk, copy_size)
            self.verification.add_results("checkpoint copies", verifier.verify_file(copies))
        elif verifier.sequence:
            self.verification.notes.append("There is no second copy of the checkpoints on this machine.")
        if outside_copy:
            copies = read_outside_copy(outside_copy, self.workspace.pk)
            self.verification.add_results("external checkpoint copies", verifier.verify_outside_copy(copies))
            if not self.verification.rows["external checkpoint copies"]:
                self.verification.notes.append("The external copy has no checkpoint of this workspace.")

    def add_faults(self, *lists: Iterable[Fault]) -> None:
        for faults in lists:
            for fault in faults:
                self.verification.add_fault(fault)
