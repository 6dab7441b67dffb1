"""Jobs of the house itself."""

from celery import shared_task
from django.core.cache import cache
from django.utils import timezone

from personas.api.idempotency import forget_old
from project import retention
from project.metrics.periodic import measure

HEARTBEAT_KEY = "worker-heartbeat"
HEARTBEAT_SECONDS = 30


@shared_task
def heartbeat_job() -> None:
    """Leave the time: proof that broker, beat and worker are alive together."""
    cache.set(HEARTBEAT_KEY, timezone.now().isoformat(), timeout=HEARTBEAT_SECONDS * 10)


@shared_task
def forget_answers_job() -> None:
    """Drop the answers of calls that nobody repeats after a day."""
    forget_old()


@shared_task
def forget_runs_job() -> None:
    """Drop old looks at sources; each source keeps its newest."""
    retention.forget_runs()


@shared_task
def forget_drafts_job() -> None:
    """Drop drafts that nobody came back to."""
    retention.forget_drafts()


@shared_task
def forget_sessions_job() -> None:
    """Drop log-ins that have ended by themselves."""
    retention.forget_sessions()


@shared_task
def measure_job() -> None:
    """Look for the figures that take longer to find."""
    measure()
