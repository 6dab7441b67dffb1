"""Celery jobs of the prompts app: rebuilds, ledger maintenance, checkpoints, verification. All idempotent."""

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
    """Enqueue rebuilds in batches, so that several workers can share them."""
    batch = settings.DRAMATIS_BUILD_BATCH
    for start in range(0, len(agent_ids), batch):
        enqueue_job(rebuild_prompts_job, workspace_id, list(agent_ids[start : start + batch]))


@shared_task
def sweep_prompts_job() -> None:
    """Enqueue all pending work found in the database: lost messages, due schedules, a new compiler."""
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
    """Seal ledger rows in blocks."""
    run_for_each_workspace(list_workspaces_to_seal(), seal_ledger)


@shared_task
def expire_ledger_job() -> None:
    """Delete ledger blocks past their workspace's retention period."""
    run_for_each_workspace(list_workspaces_to_expire(timezone.now()), expire_blocks)


# Moving rows out of the default partition takes one long statement. It is acknowledged early: a second
# worker could not help.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def maintain_partitions_job() -> None:
    """Create the ledger's partitions in advance, and drop past empty ones."""
    create_partitions()
    drop_empty_partitions()


@shared_task
def sign_checkpoints_job() -> None:
    """Sign a checkpoint of every workspace."""
    run_for_each_workspace(Workspace.objects.order_by("pk").values_list("pk", flat=True), sign_checkpoint)


# It may run longer than the broker's visibility timeout, so it is acknowledged early to avoid a second
# delivery; a lost verification has to be requested again.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def verify_chain_job(workspace_id: int, run_id: int) -> None:
    """Verify the hash chains of a workspace."""
    with workspace_scope(workspace_id):
        run_verification(workspace_id, run_id)


def enqueue_verification(run: VerificationRun) -> None:
    """Enqueue a verification after the commit; the sweep finds one that the broker did not accept."""
    if run.state == VerificationState.QUEUED:
        enqueue_after_commit(verify_chain_job, run.workspace_id, run.pk)


def run_for_each_workspace(workspace_ids: Iterable[int], action: Callable[[int], object]) -> None:
    """Run the action for each workspace; an error in one is logged and does not stop the others."""
    for workspace_id in workspace_ids:
        try:
            with workspace_scope(workspace_id):
                action(workspace_id)
        except (DatabaseError, DomainError):
            log.exception("ledger_job_failed", workspace=workspace_id)
