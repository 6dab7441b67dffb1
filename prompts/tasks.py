"""Celery jobs of the prompts app: rebuilds, ledger maintenance, checkpoints and verification.

All jobs are idempotent: running one twice changes nothing more.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import structlog
from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection
from django.utils import timezone

from core.db.citus_nodes import list_lost_nodes
from core.db.workspace_scope import workspace_scope
from core.task_queue import enqueue_after_commit, enqueue_job
from personas.api_keys.services import record_expiring_keys
from personas.models import Erasure, ErasureProgress, Workspace
from personas.tenancy.lost_nodes import list_from_workspaces, list_unreachable_workspaces
from prompts.evidence.erasure.call_data import erase_pending_call_data
from prompts.evidence.erasure.services import finish_erasure
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.integrity.lag import list_workspaces_to_sign
from prompts.evidence.integrity.services import run_verification
from prompts.evidence.ledger.blocks import list_workspaces_to_seal, seal_ledger
from prompts.evidence.ledger.outdated_bots import record_outdated_bots
from prompts.evidence.ledger.partitions import create_partitions, drop_empty_partitions
from prompts.evidence.ledger.retention import expire_blocks, list_workspaces_to_expire
from prompts.models import VerificationRun, VerificationStatus
from prompts.publishing.builds.queue import send_pending_builds
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.builds.sweep import (
    list_open_erasures,
    list_queued_verifications,
    list_waiting_workspaces,
    request_compiler_rebuilds,
    request_due_rebuilds,
)

log = structlog.get_logger(__name__)

# A job starts on no more workspaces after this many seconds, well under the time limit of jobs. The next run
# begins with the workspaces that were not reached.
WORKSPACE_JOB_SECONDS = 40.0


class WorkspaceJobFailed(Exception):
    """A job failed for some workspaces. It is raised at the end, so that Celery counts the job as failed."""


@shared_task
def rebuild_prompts_job(workspace_id: int, agent_ids: list[int]) -> None:
    """Rebuild a batch of agents, then enqueue the next batch of the workspace."""
    with workspace_scope(workspace_id):
        try:
            rebuild_agents(workspace_id, agent_ids)
        finally:
            enqueue_rebuilds(workspace_id)


def enqueue_rebuilds(workspace_id: int) -> None:
    """Enqueue the next batches of pending builds, as many as one workspace may have in the queue."""
    send_pending_builds(workspace_id, lambda pk, agent_ids: enqueue_job(rebuild_prompts_job, pk, agent_ids))


@shared_task
def sweep_prompts_job() -> None:
    """Enqueue the pending work found in the database.

    That is work whose queue message was lost, agents with a memory that became valid or expired, and prompts
    built by an older compiler.
    """
    now = timezone.now()
    requested = [
        *list_from_workspaces(request_compiler_rebuilds),
        *list_from_workspaces(partial(request_due_rebuilds, now)),
    ]
    waiting = list_from_workspaces(partial(list_waiting_workspaces, now))
    for workspace_id in dict.fromkeys([*waiting, *(pk for pk, _ in requested)]):
        with workspace_scope(workspace_id):
            enqueue_rebuilds(workspace_id)
    for workspace_id, run_id in list_from_workspaces(partial(list_queued_verifications, now)):
        enqueue_job(verify_chain_job, workspace_id, run_id)
    for workspace_id, erasure_id in list_from_workspaces(partial(list_open_erasures, now)):
        enqueue_job(finish_erasure_job, workspace_id, erasure_id)


# The rebuild of many prompts is one transaction and may take minutes. Early acknowledgement prevents a second
# delivery; if the worker dies, the sweep enqueues the erasure again.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=1_800, time_limit=1_860)
def finish_erasure_job(workspace_id: int, erasure_id: int) -> None:
    """Rebuild the prompts that contained erased text, and move labels off their versions."""
    with workspace_scope(workspace_id):
        erase_pending_call_data(workspace_id, erasure_id)
        finish_erasure(workspace_id, erasure_id)


def enqueue_erasure(erasure: Erasure) -> None:
    """Enqueue the rest of an erasure after the commit. If the broker is down, the sweep enqueues it later."""
    if erasure.status == ErasureProgress.REBUILDING:
        enqueue_after_commit(finish_erasure_job, erasure.workspace_id, erasure.pk)


@shared_task
def seal_ledger_job() -> None:
    """Seal new ledger rows of every workspace in hash-chained blocks."""
    run_for_each_workspace(list_from_workspaces(list_workspaces_to_seal), seal_ledger)


@shared_task
def expire_ledger_job() -> None:
    """Delete ledger blocks past their workspace's retention period."""
    due = list_from_workspaces(partial(list_workspaces_to_expire, timezone.now()))
    run_for_each_workspace(due, expire_blocks)


# Moving rows out of the default partition is one long statement. Early acknowledgement prevents the broker
# from delivering the job to a second worker, which would only wait for the first.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def maintain_partitions_job() -> None:
    """Create the ledger's partitions for the coming months, and drop empty partitions of past months.

    A partition is created on all nodes of Citus. While one is lost, this waits: there are partitions for
    the next months.
    """
    if lost := list_lost_nodes():
        log.warning("ledger_partitions_deferred", nodes=lost)
        return
    create_partitions()
    drop_empty_partitions()


@shared_task
def record_hourly_events_job() -> None:
    """Record events about keys that expire soon and bots that are outdated, in every workspace."""
    unreachable = list_unreachable_workspaces()
    rows = Workspace.objects.filter(deleted_at=None)
    workspace_ids = rows.order_by("?").values_list("pk", flat=True)
    run_for_each_workspace([one for one in workspace_ids if one not in unreachable], record_hourly_events)


def record_hourly_events(workspace_id: int) -> None:
    record_expiring_keys(workspace_id)
    record_outdated_bots(workspace_id)


@shared_task
def sign_checkpoints_job() -> None:
    """Sign a checkpoint of every workspace that changed, at most once per hour and workspace."""
    run_for_each_workspace(list_workspaces_to_sign(), sign_checkpoint)


# This job may run longer than the broker's visibility timeout. Early acknowledgement prevents a second
# delivery; if the worker dies, the user has to request the verification again.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def verify_chain_job(workspace_id: int, run_id: int) -> None:
    """Verify the hash chains of a workspace."""
    with workspace_scope(workspace_id):
        run_verification(workspace_id, run_id)


def enqueue_verification(run: VerificationRun) -> None:
    """Enqueue a verification after the commit. If the broker is down, the sweep enqueues it later."""
    if run.status == VerificationStatus.QUEUED:
        enqueue_after_commit(verify_chain_job, run.workspace_id, run.pk)


def run_for_each_workspace(workspace_ids: Sequence[int], action: Callable[[int], object]) -> None:
    """Run the action for each workspace, in this order, until WORKSPACE_JOB_SECONDS have passed.

    An error in one workspace is logged and does not stop the others. Raise WorkspaceJobFailed at the end if
    there was one.
    """
    deadline, failed = time.monotonic() + WORKSPACE_JOB_SECONDS, 0
    for index, workspace_id in enumerate(workspace_ids):
        if time.monotonic() > deadline:
            log.warning("workspace_job_unfinished", job=action.__name__, left=len(workspace_ids) - index)
            break
        try:
            with workspace_scope(workspace_id):
                action(workspace_id)
        except SoftTimeLimitExceeded:
            raise
        # Catch any error: one damaged row must not keep the other workspaces from being sealed and signed.
        except Exception as error:
            log.exception(
                "workspace_job_failed",
                job=action.__name__,
                workspace=workspace_id,
                error=type(error).__name__,
            )
            failed += 1
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
    if failed:
        raise WorkspaceJobFailed(f"{action.__name__} failed for {failed} of {len(workspace_ids)} workspaces")
