"""The jobs that keep the files in view; each one does nothing the second time."""

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.utils import timezone

from personas.queueing import send_after_commit
from skills.models import RefreshRun
from skills.services.files import end_lapsed_waivers
from skills.services.refreshing import LostRun, refresh_source
from skills.services.runs import (
    claim_run,
    fail_run,
    mark_sent,
    next_run,
    request_due_refreshes,
    requeue_lost_runs,
    unsent_runs,
)


@shared_task
def refresh_source_job(workspace_id: int, run_id: int) -> None:
    """Carry out one run, then whatever was asked for meanwhile."""
    run = claim_run(workspace_id, run_id)
    if run is None:
        return
    try:
        refresh_source(run)
    except LostRun:
        return
    except SoftTimeLimitExceeded:
        fail_run(run, "It took too long and was stopped.")
    except Exception as error:
        fail_run(run, f"Something went wrong: {type(error).__name__}.")
        raise
    finally:
        if following := next_run(run):
            dispatch(following)


@shared_task
def sweep_sources_job() -> None:
    """Straight from the database: lost runs again, due sources, and what the broker forgot."""
    now = timezone.now()
    requeue_lost_runs(now)
    request_due_refreshes(now)
    for run in unsent_runs(now):
        dispatch(run)
    end_lapsed_waivers(now.date())


def dispatch(run: RefreshRun) -> None:
    """Hand a queued run to a worker; a run the broker did not take is found by the sweep."""
    send_after_commit(refresh_source_job, run.workspace_id, run.pk, then=lambda: mark_sent(run))
