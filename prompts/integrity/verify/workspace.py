"""The whole record of a workspace in one look, table by table."""

import time
from collections.abc import Iterable

from personas.models import Workspace
from prompts.integrity.checkpoint_files import copies_of, copy_size
from prompts.integrity.verify.checkpoints import Checkpoints
from prompts.integrity.verify.contents import judge_contents
from prompts.integrity.verify.label_moves import Moves
from prompts.integrity.verify.ledger import RollOffs, blocks_alone, sealed_rows, stored_blocks
from prompts.integrity.verify.results import Progress, Verification
from prompts.integrity.verify.row_stream import Numbers, Prompts, one_moment
from prompts.integrity.verify.versions import Watch, stored_versions
from prompts.proof.chains import judge_chain
from prompts.proof.faults import Fault
from prompts.proof.ledger_blocks import judge_ledger


def verify_workspace(workspace: Workspace, progress: Progress | None = None) -> Verification:
    """Recompute every version, label move, ledger row, block, roll-off and checkpoint, and what they name.

    Call it outside of transactions: it then sees one moment, whatever is written meanwhile.
    """
    began = time.monotonic()
    found = Verification()
    # As it is before the moment: a copy is written after its row, so every line of it must find one.
    size = copy_size(workspace.pk)
    with one_moment():
        Look(workspace, found, progress).all(size)
    found.seconds = time.monotonic() - began
    return found


class Look:
    """The tables one after the other; what several need is read once."""

    def __init__(self, workspace: Workspace, found: Verification, progress: Progress | None) -> None:
        self.workspace, self.found, self.progress = workspace, found, progress
        self.prompts, self.numbers = Prompts(workspace), Numbers(workspace)

    def all(self, copy_size: int) -> None:
        self.versions()
        self.contents()
        self.moves()
        self.ledger()
        self.checkpoints(copy_size)

    def versions(self) -> None:
        watch = Watch(self.workspace, self.prompts)
        stored = stored_versions(self.workspace, self.prompts, watch)
        self.found.take("versions", judge_chain(stored), self.progress)
        watch.look_up()
        self.blame(watch.wrong_ends(), watch.missing)
        self.found.take("version parts", watch.parts.rows(), self.progress)
        self.blame(watch.parts.left())

    def contents(self) -> None:
        self.found.take("contents", judge_contents(self.workspace), self.progress)

    def moves(self) -> None:
        moves = Moves(self.workspace, self.prompts, self.numbers)
        self.found.take("label moves", judge_chain(moves.stored()), self.progress)
        self.blame(moves.wrong_ends())
        self.found.take("labels", moves.judge_labels())

    def ledger(self) -> None:
        gone = RollOffs(self.workspace)
        self.found.take("roll-offs", judge_chain(gone.stored()))
        self.blame(gone.untimely)
        self.found.take("ledger blocks", judge_chain(stored_blocks(self.workspace)))
        rows = sealed_rows(self.workspace, self.prompts, self.numbers)
        judged = judge_ledger(blocks_alone(self.workspace), rows, gone.last)
        self.found.take("ledger rows", judged, self.progress)
        # The blocks were judged once more over their rows, and are counted already.
        self.found.rows["ledger rows"] -= self.found.rows["ledger blocks"]

    def checkpoints(self, copy_size: int) -> None:
        checkpoints = Checkpoints(self.workspace, self.prompts)
        self.found.take("signing keys", checkpoints.judge_keys())
        self.found.take("checkpoints", checkpoints.judge(), self.progress)
        self.blame(checkpoints.idle_keys())
        if copy_size:
            copies = copies_of(self.workspace.pk, copy_size)
            self.found.take("checkpoint copies", checkpoints.judge_file(copies))
        elif checkpoints.sequence:
            self.found.notes.append("There is no second copy of the checkpoints on this machine.")

    def blame(self, *lists: Iterable[Fault]) -> None:
        for faults in lists:
            for fault in faults:
                self.found.blame(fault)
