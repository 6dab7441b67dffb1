"""The jobs that keep the files in view; each one does nothing the second time."""

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection
from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from core.task_queue import enqueue_after_commit
from skills.files.services import end_expired_waivers
from skills.models import RefreshRun
from skills.refresh.runs import (
    LostRun,
    claim_run,
    fail_run,
    get_next_run,
    list_unsent_runs,
    mark_run_sent,
    request_due_refreshes,
    requeue_lost_runs,
    requeue_run,
)
from skills.refresh.services import SourceEdited, refresh_source


@shared_task
def refresh_source_job(workspace_id: int, run_id: int) -> None:
    """Carry out one run, then whatever was asked for meanwhile."""
    with workspace_scope(workspace_id):
        process_refresh_run(workspace_id, run_id)


def process_refresh_run(workspace_id: int, run_id: int) -> None:
    run = claim_run(workspace_id, run_id)
    if run is None:
        return
    try:
        execute_refresh_run(run)
    finally:
        if following := get_next_run(run):
            enqueue_refresh_run(following)


def execute_refresh_run(run: RefreshRun) -> None:
    """However it ends, the run's row says so; only a dead worker leaves that to the sweep."""
    try:
        refresh_source(run)
    except LostRun:
        return
    except SourceEdited:
        requeue_run(run, "The source was edited meanwhile.")
    except SoftTimeLimitExceeded:
        # It may have cut off an answer of the database; what is left of that must not meet the next question.
        connection.close()
        fail_run(run, "It took too long and was stopped.")
    except OperationalError:
        connection.close()
        requeue_run(run, "The database did not answer in time.")
        raise
    except Exception as error:
        fail_run(run, f"Something went wrong: {type(error).__name__}.")
        raise


@shared_task
def sweep_sources_job() -> None:
    """Straight from the database: lost runs again, due sources, and what the broker forgot."""
    now = timezone.now()
    requeue_lost_runs(now)
    request_due_refreshes(now)
    for run in list_unsent_runs(now):
        enqueue_refresh_run(run)
    end_expired_waivers(now.date())


def enqueue_refresh_run(run: RefreshRun) -> None:
    """Hand a queued run to a worker; a run the broker did not take is found by the sweep."""
    enqueue_after_commit(refresh_source_job, run.workspace_id, run.pk, then=lambda: mark_run_sent(run))
