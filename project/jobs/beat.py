"""Celery beat scheduler that runs every job soon after a start, and touches a liveness file."""

from datetime import UTC, datetime
from typing import Any

from celery.beat import PersistentScheduler
from django.conf import settings

from project.health.liveness import touch_liveness_file

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class LivenessScheduler(PersistentScheduler):
    """Persistent scheduler that starts with the jobs it has no record of.

    Celery waits a full interval before the first run of a job. If the schedule file is lost with every
    restart, a job of every hour would then never run in a beat that is restarted every 50 minutes.

    The liveness file, which the container health check reads, is touched after each check for due jobs.
    """

    def setup_schedule(self) -> None:
        super().setup_schedule()
        for entry in self.schedule.values():
            if not entry.total_run_count:
                entry.last_run_at = LONG_AGO

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        wait = super().tick(*args, **kwargs)
        touch_liveness_file(settings.DRAMATIS_ALIVE_DIR, "beat")
        return wait
