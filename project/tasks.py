"""Jobs of the house itself."""

from celery import shared_task
from django.core.cache import cache
from django.utils import timezone

from personas.api.idempotency import delete_expired_responses
from project import retention
from project.metrics.periodic import measure_metrics

HEARTBEAT_KEY = "worker-heartbeat"
HEARTBEAT_SECONDS = 30


@shared_task
def record_heartbeat_job() -> None:
    """Leave the time: proof that broker, beat and worker are alive together."""
    cache.set(HEARTBEAT_KEY, timezone.now().isoformat(), timeout=HEARTBEAT_SECONDS * 10)


@shared_task
def purge_idempotency_keys_job() -> None:
    """Drop the answers of calls that nobody repeats after a day."""
    delete_expired_responses()


@shared_task
def purge_refresh_runs_job() -> None:
    """Drop old looks at sources; each source keeps its newest."""
    retention.purge_refresh_runs()


@shared_task
def purge_drafts_job() -> None:
    """Drop drafts that nobody came back to."""
    retention.purge_drafts()


@shared_task
def purge_sessions_job() -> None:
    """Drop log-ins that have ended by themselves."""
    retention.purge_sessions()


@shared_task
def measure_metrics_job() -> None:
    """Look for the figures that take longer to find."""
    measure_metrics()
