"""The jobs that keep the files in view; each one does nothing the second time."""

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection
from django.utils import timezone

from core.db.workspace_scope import within
from core.task_queue import send_after_commit
from skills.files.services import end_lapsed_waivers
from skills.models import RefreshRun
from skills.refresh.runs import (
    LostRun,
    claim_run,
    fail_run,
    give_back,
    give_back_lost_runs,
    mark_sent,
    next_run,
    request_due_refreshes,
    unsent_runs,
)
from skills.refresh.services import SourceEdited, refresh_source


@shared_task
def refresh_source_job(workspace_id: int, run_id: int) -> None:
    """Carry out one run, then whatever was asked for meanwhile."""
    with within(workspace_id):
        carry_out_in_turn(workspace_id, run_id)


def carry_out_in_turn(workspace_id: int, run_id: int) -> None:
    run = claim_run(workspace_id, run_id)
    if run is None:
        return
    try:
        carry_out(run)
    finally:
        if following := next_run(run):
            dispatch(following)


def carry_out(run: RefreshRun) -> None:
    """However it ends, the run's row says so; only a dead worker leaves that to the sweep."""
    try:
        refresh_source(run)
    except LostRun:
        return
    except SourceEdited:
        give_back(run, "The source was edited meanwhile.")
    except SoftTimeLimitExceeded:
        # It may have cut off an answer of the database; what is left of that must not meet the next question.
        connection.close()
        fail_run(run, "It took too long and was stopped.")
    except OperationalError:
        connection.close()
        give_back(run, "The database did not answer in time.")
        raise
    except Exception as error:
        fail_run(run, f"Something went wrong: {type(error).__name__}.")
        raise


@shared_task
def sweep_sources_job() -> None:
    """Straight from the database: lost runs again, due sources, and what the broker forgot."""
    now = timezone.now()
    give_back_lost_runs(now)
    request_due_refreshes(now)
    for run in unsent_runs(now):
        dispatch(run)
    end_lapsed_waivers(now.date())


def dispatch(run: RefreshRun) -> None:
    """Hand a queued run to a worker; a run the broker did not take is found by the sweep."""
    send_after_commit(refresh_source_job, run.workspace_id, run.pk, then=lambda: mark_sent(run))
