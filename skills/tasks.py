"""Celery tasks that refresh sources and repair the queue of refresh runs. Each task is idempotent."""

from functools import partial

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from core.task_queue import enqueue_job
from personas.tenancy.lost_nodes import list_from_workspaces, query_workspaces
from skills.files.services import end_expired_waivers
from skills.models import RefreshRun
from skills.refresh.runs import (
    LostRun,
    claim_run,
    fail_run,
    list_runs_to_send,
    list_unsent_workspaces,
    mark_run_sent,
    request_due_refreshes,
    requeue_lost_runs,
    requeue_run,
)
from skills.refresh.services import SourceEdited, refresh_source


@shared_task
def refresh_source_job(workspace_id: int, run_id: int) -> None:
    """Execute one refresh run, then enqueue the next runs of the workspace."""
    with workspace_scope(workspace_id):
        run = claim_run(workspace_id, run_id)
        if run is None:
            return
        try:
            execute_refresh_run(run)
        finally:
            send_waiting_runs(workspace_id)


def execute_refresh_run(run: RefreshRun) -> None:
    """Refresh the source and store the outcome on the run, also after an error.

    Only a run whose worker process died keeps no outcome; `sweep_sources_job` requeues it.
    """
    try:
        refresh_source(run)
    except LostRun:
        return
    except SourceEdited:
        requeue_run(run, "The source was edited during the run.")
    except SoftTimeLimitExceeded:
        # The time limit may have interrupted a query. Close the connection, so that the next query does not
        # receive the unread result of the interrupted one.
        connection.close()
        fail_run(run, "The run timed out.")
    except OperationalError:
        connection.close()
        requeue_run(run, "The database did not answer in time.")
        raise
    except Exception as error:
        fail_run(run, f"Something went wrong: {type(error).__name__}.")
        raise


@shared_task
def sweep_sources_job() -> None:
    """Run the periodic maintenance of sources.

    Requeue runs whose worker died, request scheduled refreshes that are due, enqueue queued runs again that
    the broker lost, and end expired waivers.
    """
    now = timezone.now()
    query_workspaces(partial(requeue_lost_runs, now))
    query_workspaces(partial(request_due_refreshes, now))
    for workspace_id in list_from_workspaces(partial(list_unsent_workspaces, now)):
        with workspace_scope(workspace_id):
            send_waiting_runs(workspace_id)
    query_workspaces(partial(end_expired_waivers, now.date()))


def enqueue_refresh_run(run: RefreshRun) -> None:
    """Send a queued run to the message broker after the transaction is committed.

    If the broker does not accept the run, `sweep_sources_job` sends it again later. If the workspace has
    enough jobs in the queue, the run is sent when one of them ends.
    """
    transaction.on_commit(partial(send_waiting_runs, run.workspace_id), robust=True)


def send_waiting_runs(workspace_id: int) -> None:
    """Send as many waiting runs as the person of the workspace may have in the queue."""
    for run in list_runs_to_send(workspace_id, timezone.now()):
        if not enqueue_job(refresh_source_job, run.workspace_id, run.pk):
            return
        with workspace_scope(run.workspace_id):
            mark_run_sent(run)
