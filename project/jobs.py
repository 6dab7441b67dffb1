"""Jobs of the house itself."""

from celery import shared_task
from django.core.cache import cache
from django.utils import timezone

from personas.api.idempotency import forget_old

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
