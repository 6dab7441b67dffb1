"""R4 and R13: a worker that is killed while it seals the ledger or signs a checkpoint loses nothing."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.utils import timezone

from prompts.evidence.integrity.lag import list_workspaces_to_sign
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.ledger.blocks import list_workspaces_to_seal
from prompts.models import Checkpoint, LedgerBlock, LedgerEntry
from prompts.tasks import seal_ledger_job, sign_checkpoints_job
from tests.factories import make_user, make_workspace
from tests.promises import FAULT
from tests.promises.stopped_worker import COPY, GATE, POINT
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.workers import Worker, start_worker, wait_for

pytestmark = [
    pytest.mark.hard,
    pytest.mark.redis,
    pytest.mark.promise("R4"),
    pytest.mark.promise("R13"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("own_broker"),
]

WORKSPACES, FETCHES = 3, 5
REACHED_SECONDS, FINISH_SECONDS = 20.0, 30.0
BLOCKS, CHECKPOINTS = LedgerBlock._meta.db_table, Checkpoint._meta.db_table
# Where the worker is killed, and the job that gets there.
POINTS = {BLOCKS: seal_ledger_job, CHECKPOINTS: sign_checkpoints_job, COPY: sign_checkpoints_job}


class Scene:
    """Workspaces with ledger rows that are old enough to be sealed, and workers that stop at one point."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        owner = make_user("Carol")
        self.stages = [make_stage(make_workspace(f"Harbour {n}", owner=owner)) for n in range(WORKSPACES)]
        self.acknowledged = 0

    @property
    def gate(self) -> Path:
        return self.folder / "gate"

    def fetch(self) -> None:
        with time_machine.travel(timezone.now() - timedelta(minutes=5), tick=False):
            for stage in self.stages * FETCHES:
                stage.fetch()
                self.acknowledged += 1

    def start(self, name: str, point: str, fault: str) -> Worker:
        environment = {POINT: point, GATE: str(self.gate), FAULT: fault}
        environment["DRAMATIS_CHECKPOINT_DIR"] = str(self.folder / "checkpoints")
        log = self.folder / f"{name}.log"
        return start_worker(log, application="tests.promises.stopped_worker", environment=environment)

    def kill_at(self, point: str, fault: str = "") -> None:
        """Run the job that gets to this point, and kill its worker there."""
        self.gate.touch()
        worker = self.start(f"killed-{point}", point, fault)
        try:
            POINTS[point].delay()
            reached = self.gate.with_suffix(".reached")
            assert wait_for(reached.exists, REACHED_SECONDS), worker.log.read_text()[-3_000:]
        finally:
            worker.kill()
        reached.unlink()
        self.gate.unlink()

    def finish(self, fault: str = "", *, is_finished: Callable[[], bool]) -> bool:
        """Run both jobs in a new worker, as the schedule does; return whether they finished."""
        worker = self.start("next", "", fault)
        try:
            seal_ledger_job.delay()
            sign_checkpoints_job.delay()
            return bool(wait_for(is_finished, FINISH_SECONDS if not fault else 4))
        finally:
            worker.kill()

    def find_losses(self) -> list[str]:
        """Find rows that are missing or in no block or twice, and checkpoints without a copy."""
        rows = LedgerEntry.unscoped.count()
        losses = [f"{self.acknowledged} fetches and {rows} rows"] if rows != self.acknowledged else []
        for stage in self.stages:
            losses += find_workspace_losses(stage)
        return losses


def find_workspace_losses(stage: Stage) -> list[str]:
    name, result = stage.workspace.name, verify_workspace(stage.workspace)
    blocks = LedgerBlock.objects.in_workspace(stage.workspace).order_by("sequence")
    sealed = sum(blocks.values_list("count", flat=True))
    signed = Checkpoint.objects.in_workspace(stage.workspace).count()
    losses = [] if result.is_sound else [f"{name}: {result.first}"]
    if sealed != len(stage.rows):
        losses.append(f"{name}: {sealed} of {len(stage.rows)} rows are in a block")
    if (copied := result.rows.get("checkpoint copies", 0)) != signed or not signed:
        losses.append(f"{name}: {copied} of {signed} checkpoints are copied")
    return losses


def is_all_done() -> bool:
    return not list_workspaces_to_seal() and not list_workspaces_to_sign()


@pytest.fixture
def scene(settings, tmp_path) -> Scene:
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    scene = Scene(tmp_path)
    scene.fetch()
    return scene


def count_uncommitted(point: str) -> int:
    """Count the rows that the killed job must not have left."""
    models = {BLOCKS: LedgerBlock, CHECKPOINTS: Checkpoint}
    return models[point].unscoped.count() if point in models else 0


def test_a_worker_killed_while_it_seals_or_signs_loses_nothing(scene, record_property):
    for point in POINTS:
        before = count_uncommitted(point)
        scene.kill_at(point)
        assert count_uncommitted(point) == before
        scene.fetch()
    # A checkpoint is copied after it is committed, so the worker may not be stopped in between.
    scene.finish(is_finished=lambda: is_all_done() and not scene.find_losses())
    losses = scene.find_losses()
    record_property(
        "measured",
        f"worker killed {len(POINTS)} times while it sealed or signed: {scene.acknowledged} rows in "
        f"{LedgerBlock.unscoped.count()} blocks and {Checkpoint.unscoped.count()} checkpoints, "
        f"{len(losses)} losses",
    )
    assert losses == []


@pytest.mark.planted
def test_jobs_that_the_next_ones_do_not_complete_are_found(scene):
    faults = "progress_before_commit,copies_of_new_checkpoints"
    scene.kill_at(BLOCKS, faults)
    scene.kill_at(COPY, faults)
    assert not scene.finish(faults, is_finished=is_all_done)
    losses = "\n".join(scene.find_losses())
    assert "rows are in a block" in losses
    assert "checkpoints are copied" in losses
