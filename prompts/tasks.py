"""The jobs that keep prompts true to their parts; each does nothing the second time."""

from collections.abc import Callable, Iterable, Sequence

import structlog
from celery import shared_task
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from core.db.workspace_scope import within
from core.task_queue import send, send_after_commit
from personas.errors import DomainError
from personas.models import Workspace
from prompts.builds.services import rebuild_agents
from prompts.builds.sweep import agents_due, agents_waiting, looks_waiting, note_upgrade
from prompts.integrity.checkpoints import sign_checkpoint
from prompts.integrity.services import carry_out_verification
from prompts.ledger.blocks import seal_workspace, workspaces_to_seal
from prompts.ledger.partitions import drop_empty_months, make_months
from prompts.ledger.retention import roll_off, workspaces_with_old_blocks
from prompts.models import VerificationRun, VerificationState

log = structlog.get_logger(__name__)


@shared_task
def rebuild_prompts_job(workspace_id: int, agent_ids: list[int]) -> None:
    with within(workspace_id):
        rebuild_agents(workspace_id, agent_ids)


def hand_on(workspace_id: int, agent_ids: Sequence[int]) -> None:
    """Leave agents to the workers, in portions that many of them can share."""
    batch = settings.DRAMATIS_BUILD_BATCH
    for start in range(0, len(agent_ids), batch):
        send(rebuild_prompts_job, workspace_id, list(agent_ids[start : start + batch]))


@shared_task
def sweep_prompts_job() -> None:
    """Straight from the database: what a lost message missed, what the clock or an upgrade has changed."""
    now = timezone.now()
    for workspace_id, agent_ids in [*note_upgrade(), *agents_waiting(now), *agents_due(now)]:
        hand_on(workspace_id, agent_ids)
    for workspace_id, run_id in looks_waiting(now):
        send(verify_chain_job, workspace_id, run_id)


@shared_task
def seal_ledger_job() -> None:
    """Close the ledger rows that have come to rest."""
    for_each(workspaces_to_seal(), seal_workspace)


@shared_task
def roll_off_ledger_job() -> None:
    """Let go of ledger blocks that have outlived their workspace's months."""
    for_each(workspaces_with_old_blocks(timezone.now()), roll_off)


# Rows that no month was made for are moved in one go; a second hand could not help.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def keep_ledger_months_job() -> None:
    """Make the ledger's months before they begin, and drop those that are over and empty."""
    make_months()
    drop_empty_months()


@shared_task
def sign_checkpoints_job() -> None:
    """State, signed, how far every workspace's record has come."""
    for_each(Workspace.objects.order_by("pk").values_list("pk", flat=True), sign_checkpoint)


# Longer than the broker waits before it hands a job out anew, so the message is taken off first; a look that
# was lost is asked for again by hand.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def verify_chain_job(workspace_id: int, run_id: int) -> None:
    """Recompute the whole record of a workspace."""
    with within(workspace_id):
        carry_out_verification(workspace_id, run_id)


def dispatch_verification(run: VerificationRun) -> None:
    """Hand a look to a worker; one that the broker did not take is found by the sweep."""
    if run.state == VerificationState.QUEUED:
        send_after_commit(verify_chain_job, run.workspace_id, run.pk)


def for_each(workspace_ids: Iterable[int], verb: Callable[[int], object]) -> None:
    """One workspace in trouble must not keep the others waiting."""
    for workspace_id in workspace_ids:
        try:
            with within(workspace_id):
                verb(workspace_id)
        except (DatabaseError, DomainError):
            log.exception("ledger_job_failed", workspace=workspace_id)
