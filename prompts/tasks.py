"""The jobs that keep prompts true to their parts; each does nothing the second time."""

from collections.abc import Callable, Iterable, Sequence

import structlog
from celery import shared_task
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from core.task_queue import enqueue_after_commit, enqueue_job
from personas.errors import DomainError
from personas.models import Workspace
from prompts.builds.services import rebuild_agents
from prompts.builds.sweep import (
    list_due_agents,
    list_queued_verifications,
    list_waiting_agents,
    request_compiler_rebuilds,
)
from prompts.integrity.checkpoints import sign_checkpoint
from prompts.integrity.services import run_verification
from prompts.ledger.blocks import list_workspaces_to_seal, seal_ledger
from prompts.ledger.partitions import create_partitions, drop_empty_partitions
from prompts.ledger.retention import expire_blocks, list_workspaces_to_expire
from prompts.models import VerificationRun, VerificationState

log = structlog.get_logger(__name__)


@shared_task
def rebuild_prompts_job(workspace_id: int, agent_ids: list[int]) -> None:
    with workspace_scope(workspace_id):
        rebuild_agents(workspace_id, agent_ids)


def enqueue_rebuilds(workspace_id: int, agent_ids: Sequence[int]) -> None:
    """Leave agents to the workers, in portions that many of them can share."""
    batch = settings.DRAMATIS_BUILD_BATCH
    for start in range(0, len(agent_ids), batch):
        enqueue_job(rebuild_prompts_job, workspace_id, list(agent_ids[start : start + batch]))


@shared_task
def sweep_prompts_job() -> None:
    """Straight from the database: what a lost message missed, what the clock or an upgrade has changed."""
    now = timezone.now()
    for workspace_id, agent_ids in [
        *request_compiler_rebuilds(),
        *list_waiting_agents(now),
        *list_due_agents(now),
    ]:
        enqueue_rebuilds(workspace_id, agent_ids)
    for workspace_id, run_id in list_queued_verifications(now):
        enqueue_job(verify_chain_job, workspace_id, run_id)


@shared_task
def seal_ledger_job() -> None:
    """Close the ledger rows that have come to rest."""
    run_for_each_workspace(list_workspaces_to_seal(), seal_ledger)


@shared_task
def expire_ledger_job() -> None:
    """Let go of ledger blocks that have outlived their workspace's months."""
    run_for_each_workspace(list_workspaces_to_expire(timezone.now()), expire_blocks)


# Rows that no month was made for are moved in one go; a second hand could not help.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def maintain_partitions_job() -> None:
    """Make the ledger's months before they begin, and drop those that are over and empty."""
    create_partitions()
    drop_empty_partitions()


@shared_task
def sign_checkpoints_job() -> None:
    """State, signed, how far every workspace's record has come."""
    run_for_each_workspace(Workspace.objects.order_by("pk").values_list("pk", flat=True), sign_checkpoint)


# Longer than the broker waits before it hands a job out anew, so the message is taken off first; a look that
# was lost is asked for again by hand.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def verify_chain_job(workspace_id: int, run_id: int) -> None:
    """Recompute the whole record of a workspace."""
    with workspace_scope(workspace_id):
        run_verification(workspace_id, run_id)


def enqueue_verification(run: VerificationRun) -> None:
    """Hand a look to a worker; one that the broker did not take is found by the sweep."""
    if run.state == VerificationState.QUEUED:
        enqueue_after_commit(verify_chain_job, run.workspace_id, run.pk)


def run_for_each_workspace(workspace_ids: Iterable[int], verb: Callable[[int], object]) -> None:
    """One workspace in trouble must not keep the others waiting."""
    for workspace_id in workspace_ids:
        try:
            with workspace_scope(workspace_id):
                verb(workspace_id)
        except (DatabaseError, DomainError):
            log.exception("ledger_job_failed", workspace=workspace_id)
