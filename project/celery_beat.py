"""Celery beat scheduler that touches a liveness file, which the container health check reads."""

from typing import Any

from celery.beat import PersistentScheduler
from django.conf import settings

from project.health.liveness import touch_liveness_file


class LivenessScheduler(PersistentScheduler):
    """Persistent scheduler that touches the liveness file after each check for due jobs."""

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        wait = super().tick(*args, **kwargs)
        touch_liveness_file(settings.DRAMATIS_ALIVE_DIR, "beat")
        return wait
