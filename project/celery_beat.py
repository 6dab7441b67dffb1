"""The schedule's clock, with a sign of life at each turn."""

from typing import Any

from celery.beat import PersistentScheduler
from django.conf import settings

from project.health.liveness import touch_liveness_file


class LivenessScheduler(PersistentScheduler):
    """Leaves a sign whenever it has looked for jobs that are due."""

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        wait = super().tick(*args, **kwargs)
        touch_liveness_file(settings.DRAMATIS_ALIVE_DIR, "beat")
        return wait
