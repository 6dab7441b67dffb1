"""Request verification runs and execute them in a worker; a workspace has at most one open run at a time."""

from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.events.services import record_event
from personas.models import Workspace
from personas.tenancy.lost_nodes import lock_workspace
from prompts.evidence.integrity.verify import verify_workspace
from prompts.models import VerificationRun, VerificationStatus

log = structlog.get_logger(__name__)

# The job's time limit plus a margin: a run that started earlier and is still open was lost with its worker.
MAX_RUN_TIME = timedelta(minutes=65)
OPEN_STATUSES = (VerificationStatus.QUEUED, VerificationStatus.RUNNING)


@transaction.atomic
def request_verification(workspace: Workspace, *, by: Actor) -> VerificationRun:
    """Return the open verification run, or create one."""
    lock_workspace(workspace.pk)
    rows = VerificationRun.objects.in_workspace(workspace).filter(status__in=OPEN_STATUSES)
    rows.filter(started_at__lt=timezone.now() - MAX_RUN_TIME).update(
        status=VerificationStatus.FAILED,
        ended_at=timezone.now(),
        problem=("The worker stopped before the run was finished."),
    )
    if (open_run := rows.first()) is not None:
        return open_run
    run = VerificationRun(workspace=workspace, requested_label=by.label[:254])
    run.save(force_insert=True)
    write_audit_event(workspace, "requested", "verification", run.pk, "Verification", by=by)
    return run


def run_verification(workspace_id: int, run_id: int) -> VerificationRun | None:
    """Verify the workspace and store the result; return None if another worker has taken the run.

    Must be called outside a transaction.
    """
    rows = VerificationRun.objects.in_workspace(workspace_id)
    queued = rows.filter(pk=run_id, status=VerificationStatus.QUEUED)
    if not queued.update(status=VerificationStatus.RUNNING, started_at=timezone.now()):
        return None
    run = rows.select_related("workspace").get(pk=run_id)
    try:
        verification = verify_workspace(run.workspace)
    except BaseException as error:
        finish_verification(
            run,
            VerificationStatus.FAILED,
            (f"The run was stopped by an internal error ({type(error).__name__})."),
        )
        raise
    run.result = verification.to_json()
    if not verification.first:
        return finish_verification(run, VerificationStatus.DONE)
    with transaction.atomic():
        finish_verification(run, VerificationStatus.DONE)
        data = {"verification_id": run.pk, "count": verification.bad}
        record_event(workspace_id, "chain.broken", data)
    log.error(
        "integrity_faults_found",
        workspace=workspace_id,
        bad=verification.bad,
        first=str(verification.first),
    )
    return run


def finish_verification(
    run: VerificationRun, status: VerificationStatus, problem: str = ""
) -> VerificationRun:
    run.status, run.problem, run.ended_at = status, problem, timezone.now()
    run.save(update_fields=["status", "problem", "ended_at", "result"])
    return run


def delete_verifications_before(cutoff: datetime) -> int:
    """Delete runs that ended before the cutoff, except the last one of each workspace."""
    later = VerificationRun.unscoped.filter(workspace=OuterRef("workspace"), pk__gt=OuterRef("pk"))
    rows = VerificationRun.unscoped.filter(Exists(later), ended_at__lt=cutoff)
    return delete_in_batches(rows.exclude(status__in=OPEN_STATUSES))
