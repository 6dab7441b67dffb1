"""Celery jobs of the project: heartbeat, notifications, webhooks, retention and metrics."""

from celery import shared_task
from django.core.cache import cache
from django.utils import timezone

from personas.api.idempotency import delete_expired_responses
from personas.notifications.emails import send_notification_emails
from personas.notifications.services import create_all_notifications
from personas.tenancy.lost_nodes import query_workspaces
from personas.webhooks.deliver import DeliveryLoop
from personas.workspaces.removal import remove_deleted_workspaces
from project import retention
from project.journal.services import record_endings
from project.metrics.periodic import measure_metrics

HEARTBEAT_KEY = "worker-heartbeat"
HEARTBEAT_SECONDS = 30


@shared_task
def record_heartbeat_job() -> None:
    """Store the current time, which shows that broker, beat and worker are running."""
    cache.set(HEARTBEAT_KEY, timezone.now().isoformat(), timeout=HEARTBEAT_SECONDS * 10)


@shared_task
def record_endings_job() -> None:
    """Append what ended (keys, members, erasures) to the journal outside of the database."""
    record_endings()


@shared_task
def purge_idempotency_keys_job() -> None:
    """Delete the stored responses of requests with an Idempotency-Key after they have expired."""
    query_workspaces(delete_expired_responses)


@shared_task
def purge_refresh_runs_job() -> None:
    """Delete old refresh runs. The newest run of each source is kept."""
    retention.purge_refresh_runs()


@shared_task
def purge_drafts_job() -> None:
    """Delete abandoned drafts."""
    retention.purge_drafts()


@shared_task
def purge_security_events_job() -> None:
    """Delete old security events."""
    retention.purge_security_events()


# Acknowledged early: the rows in the database are the queue, and the next job replaces a lost one.
@shared_task(acks_late=False, reject_on_worker_lost=False)
def deliver_webhooks_job() -> None:
    """Create deliveries for new events and send the due ones."""
    DeliveryLoop().run()


@shared_task(acks_late=False, reject_on_worker_lost=False)
def create_notifications_job() -> None:
    """Create the notifications of new events."""
    create_all_notifications()


@shared_task(acks_late=False, reject_on_worker_lost=False)
def send_notification_emails_job() -> None:
    """Send members their unread notifications by email."""
    send_notification_emails()


@shared_task
def purge_events_job() -> None:
    """Delete old notifications, deliveries of webhooks and events."""
    retention.purge_events()


@shared_task
def purge_sessions_job() -> None:
    """Delete expired sessions."""
    retention.purge_sessions()


@shared_task
def purge_reports_job() -> None:
    """Delete old reports of bots and old verification runs."""
    retention.purge_reports()
    retention.purge_verifications()


# The time limit is long, because the job deletes all rows of a workspace.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def remove_workspaces_job() -> None:
    """Remove the rows of workspaces that were deleted and can no longer be restored."""
    remove_deleted_workspaces()


# The time limit is long, because the job reads all versions of each workspace.
@shared_task(acks_late=False, reject_on_worker_lost=False, soft_time_limit=3_600, time_limit=3_700)
def purge_contents_job() -> None:
    """Delete contents, file revisions and values of calls that nothing refers to."""
    retention.purge_contents()


@shared_task
def measure_metrics_job() -> None:
    """Compute the metrics that are too slow for a scrape."""
    measure_metrics()
