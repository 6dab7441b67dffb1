"""R18 at full size: 5,000 workspaces are signed in time, and a killed worker loses no checkpoint."""

import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from personas.models import Agent, Channel, Workspace
from project.metrics.gauges import collect_lag
from prompts.evidence.integrity.checkpoint_files import get_checkpoint_path
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.integrity.lag import SIGN_INTERVAL, list_workspace_lags, list_workspaces_to_sign
from prompts.evidence.integrity.verify import verify_workspace
from prompts.models import AgentPrompt, Checkpoint
from prompts.tasks import sign_checkpoints_job
from tests.factories import make_user, make_workspace
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.workers import Worker, start_worker, wait_for

pytestmark = [pytest.mark.hard, pytest.mark.promise("R18")]
IDLE, BUSY = 5_000, 200
# For one run over idle workspaces, and for one scrape of the metrics.
IDLE_RUN_SECONDS, SCRAPE_SECONDS = 10.0, 5.0
# A fast machine signs all workspaces before the last kill.
KILLS, FEWEST_KILLS, WORKSPACES, FINISH_SECONDS = 5, 2, 30, 120.0


def create_signed_workspaces(count: int) -> list[int]:
    """Create workspaces with one prompt and one checkpoint each, an hour old, as rows only."""
    stage = make_stage(make_workspace("First", owner=make_user("Carol")))
    with time_machine.travel(timezone.now() - 2 * SIGN_INTERVAL, tick=False):
        first = sign_checkpoint(stage.workspace.pk)
    assert first is not None
    names = [f"idle-{number}" for number in range(count)]
    workspaces = Workspace.objects.bulk_create([Workspace(name=name, slug=name) for name in names])
    agents = Agent.unscoped.bulk_create(
        [Agent(workspace=workspace, slug="pilot", name="Pilot") for workspace in workspaces]
    )
    channels = Channel.unscoped.bulk_create(
        [Channel(workspace=workspace, slug="deck", name="Deck") for workspace in workspaces]
    )
    prompt = stage.prompt
    AgentPrompt.unscoped.bulk_create(
        [
            AgentPrompt(
                workspace=agent.workspace,
                agent=agent,
                channel=channel,
                last_number=prompt.last_number,
                last_hash=prompt.last_hash,
                last_move=prompt.last_move,
                last_move_hash=prompt.last_move_hash,
            )
            for agent, channel in zip(agents, channels, strict=True)
        ]
    )
    Checkpoint.unscoped.bulk_create(
        [
            Checkpoint(
                workspace=workspace,
                sequence=1,
                body=first.body | {"workspace": workspace.pk},
                heads=first.heads,
                at=first.at,
                hash=first.hash,
                key_id=first.key_id,
                signature=first.signature,
            )
            for workspace in workspaces
        ]
    )
    return [workspace.pk for workspace in workspaces]


@pytest.mark.django_db
def test_five_thousand_idle_workspaces_are_signed_in_time(settings, tmp_path, record_property):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    ids = create_signed_workspaces(IDLE)
    for workspace_id in ids:
        get_checkpoint_path(workspace_id).write_text("\n")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    began = time.monotonic()
    sign_checkpoints_job()
    idle_seconds = time.monotonic() - began
    assert Checkpoint.unscoped.count() == IDLE + 1
    began = time.monotonic()
    collect_lag()
    scrape_seconds = time.monotonic() - began
    changed = ids[-BUSY:]
    AgentPrompt.unscoped.filter(workspace__in=changed).update(last_number=100, last_hash="a" * 64)
    assert list_workspaces_to_sign() == changed
    began = time.monotonic()
    sign_checkpoints_job()
    busy_seconds = time.monotonic() - began
    assert list_workspaces_to_sign() == []
    assert Checkpoint.unscoped.filter(sequence=2).count() == BUSY
    record_property(
        "measured",
        f"{IDLE:,} idle workspaces in {idle_seconds:.1f} s ({idle_seconds / IDLE * 1e3:.2f} ms each), "
        f"{(busy_seconds - idle_seconds) / BUSY * 1e3:.0f} ms per signed one, lag for a scrape in "
        f"{scrape_seconds:.1f} s",
    )
    assert idle_seconds <= IDLE_RUN_SECONDS
    assert scrape_seconds <= SCRAPE_SECONDS


# --- a killed worker -----------------------------------------------------------------------------------


@pytest.fixture
def stages(settings) -> list[Stage]:
    settings.DRAMATIS_WORKSPACES_PER_PERSON = 0
    owner = make_user("Carol")
    stages = [make_stage(make_workspace(f"Harbour {number}", owner=owner)) for number in range(WORKSPACES)]
    with time_machine.travel(timezone.now() - timedelta(minutes=5), tick=False):
        for stage in stages:
            stage.fetch()
    return stages


def start_signing(log: Path, folder: Path) -> Worker:
    worker = start_worker(log, environment={"DRAMATIS_CHECKPOINT_DIR": str(folder)})
    sign_checkpoints_job.delay()
    return worker


def list_uncopied(stages: list[Stage]) -> list[int]:
    """The workspaces without a file of checkpoints."""
    ids = [stage.workspace.pk for stage in stages]
    return [
        pk for pk in ids if not get_checkpoint_path(pk).exists() or not get_checkpoint_path(pk).stat().st_size
    ]


def has_checkpoints(count: int) -> bool:
    return Checkpoint.unscoped.count() >= count


@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_while_it_signs_loses_nothing(
    stages, own_broker, settings, tmp_path, record_property
):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    kills = 0
    while (before := Checkpoint.unscoped.count()) < WORKSPACES and kills < KILLS:
        worker = start_signing(tmp_path / f"log{kills}", settings.DRAMATIS_CHECKPOINT_DIR)
        assert wait_for(partial(has_checkpoints, before + 1), FINISH_SECONDS)
        worker.kill()
        kills += Checkpoint.unscoped.count() < WORKSPACES
    assert kills >= FEWEST_KILLS
    worker = start_signing(tmp_path / "log", settings.DRAMATIS_CHECKPOINT_DIR)
    try:
        assert wait_for(partial(has_checkpoints, WORKSPACES), FINISH_SECONDS)
        # A checkpoint is copied to its file after its commit.
        assert wait_for(lambda: not list_workspaces_to_sign() and not list_uncopied(stages), FINISH_SECONDS)
    finally:
        worker.kill()
    assert Checkpoint.unscoped.count() == WORKSPACES
    results = [verify_workspace(stage.workspace) for stage in stages]
    assert [str(result.first) for result in results if not result.is_sound] == []
    assert [result.rows["checkpoint copies"] for result in results] == [1] * WORKSPACES
    assert [result.rows["ledger blocks"] for result in results] == [1] * WORKSPACES
    assert not [lag for lag in list_workspace_lags() if lag.is_unsealed_too_long or lag.is_unsigned_too_long]
    record_property(
        "measured", f"worker killed {kills} times while it signed {WORKSPACES} workspaces, nothing lost"
    )
