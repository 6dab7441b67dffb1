"""The whole record of a workspace in one look, table by table."""

import time
from collections.abc import Iterable

from personas.models import Workspace
from prompts.integrity.checkpoint_files import get_checkpoint_file_size, read_checkpoint_copies
from prompts.integrity.verify.checkpoints import CheckpointVerifier
from prompts.integrity.verify.contents import verify_contents
from prompts.integrity.verify.label_moves import LabelMoveVerifier
from prompts.integrity.verify.ledger import (
    RollOffVerifier,
    iterate_block_rows,
    iterate_sealed_rows,
    iterate_stored_blocks,
)
from prompts.integrity.verify.results import ProgressCallback, WorkspaceVerification
from prompts.integrity.verify.row_stream import VersionNumbers, WorkspacePrompts, read_only_snapshot
from prompts.integrity.verify.versions import VersionVerifier, iterate_stored_versions
from prompts.proof.chains import iterate_chain_faults
from prompts.proof.faults import Fault
from prompts.proof.ledger_blocks import iterate_ledger_faults


def verify_workspace(workspace: Workspace, progress: ProgressCallback | None = None) -> WorkspaceVerification:
    """Recompute every version, label move, ledger row, block, roll-off and checkpoint, and what they name.

    Call it outside of transactions: it then sees one moment, whatever is written meanwhile.
    """
    began = time.monotonic()
    found = WorkspaceVerification()
    # As it is before the moment: a copy is written after its row, so every line of it must find one.
    size = get_checkpoint_file_size(workspace.pk)
    with read_only_snapshot():
        WorkspaceVerifier(workspace, found, progress).all(size)
    found.seconds = time.monotonic() - began
    return found


class WorkspaceVerifier:
    """The tables one after the other; what several need is read once."""

    def __init__(
        self, workspace: Workspace, found: WorkspaceVerification, progress: ProgressCallback | None
    ) -> None:
        self.workspace, self.found, self.progress = workspace, found, progress
        self.prompts, self.numbers = WorkspacePrompts(workspace), VersionNumbers(workspace)

    def all(self, copy_size: int) -> None:
        self.versions()
        self.contents()
        self.moves()
        self.ledger()
        self.checkpoints(copy_size)

    def versions(self) -> None:
        watch = VersionVerifier(self.workspace, self.prompts)
        stored = iterate_stored_versions(self.workspace, self.prompts, watch)
        self.found.take("versions", iterate_chain_faults(stored), self.progress)
        watch.look_up()
        self.blame(watch.wrong_ends(), watch.missing)
        self.found.take("version parts", watch.parts.rows(), self.progress)
        self.blame(watch.parts.left())

    def contents(self) -> None:
        self.found.take("contents", verify_contents(self.workspace), self.progress)

    def moves(self) -> None:
        moves = LabelMoveVerifier(self.workspace, self.prompts, self.numbers)
        self.found.take("label moves", iterate_chain_faults(moves.stored()), self.progress)
        self.blame(moves.wrong_ends())
        self.found.take("labels", moves.judge_labels())

    def ledger(self) -> None:
        gone = RollOffVerifier(self.workspace)
        self.found.take("roll-offs", iterate_chain_faults(gone.stored()))
        self.blame(gone.untimely)
        self.found.take("ledger blocks", iterate_chain_faults(iterate_stored_blocks(self.workspace)))
        rows = iterate_sealed_rows(self.workspace, self.prompts, self.numbers)
        judged = iterate_ledger_faults(iterate_block_rows(self.workspace), rows, gone.last)
        self.found.take("ledger rows", judged, self.progress)
        # The blocks were judged once more over their rows, and are counted already.
        self.found.rows["ledger rows"] -= self.found.rows["ledger blocks"]

    def checkpoints(self, copy_size: int) -> None:
        checkpoints = CheckpointVerifier(self.workspace, self.prompts)
        self.found.take("signing keys", checkpoints.judge_keys())
        self.found.take("checkpoints", checkpoints.judge(), self.progress)
        self.blame(checkpoints.idle_keys())
        if copy_size:
            copies = read_checkpoint_copies(self.workspace.pk, copy_size)
            self.found.take("checkpoint copies", checkpoints.judge_file(copies))
        elif checkpoints.sequence:
            self.found.notes.append("There is no second copy of the checkpoints on this machine.")

    def blame(self, *lists: Iterable[Fault]) -> None:
        for faults in lists:
            for fault in faults:
                self.found.blame(fault)
