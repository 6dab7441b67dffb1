"""Workers and what waits for them; the disks they write to."""

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.utils import timezone

from project.doctor.results import Finding, fail, ok, warn
from project.metrics.gauges import Asked, builds, nearest, refreshes
from project.tasks import HEARTBEAT_KEY, HEARTBEAT_SECONDS

# Two missed beats are a slow minute, ten of them a missing worker.
LATE = timedelta(seconds=HEARTBEAT_SECONDS * 3)
SLOW_SECONDS, STUCK_SECONDS = 120, 900
TIGHT, FULL = 0.10, 0.03
START = "Start `celery -A project worker` and one `celery -A project beat`."


def look_at_work() -> Iterator[Finding]:
    yield heartbeat()
    yield waiting("build queue", builds)
    yield waiting("refresh queue", refreshes)


def heartbeat() -> Finding:
    said = cache.get(HEARTBEAT_KEY)
    if said is None:
        return fail("worker", "No worker has reported for minutes.", START)
    age = timezone.now() - datetime.fromisoformat(said)
    words = f"Last heard of {age.total_seconds():.0f} s ago."
    return warn("worker", words, "Look at the log of worker and beat.") if age > LATE else ok("worker", words)


def waiting(name: str, asked: Asked) -> Finding:
    """How much waits, and since when."""
    many, oldest = (figure.samples[0].value for figure in asked())
    words = f"{many:.0f} wait, the oldest for {oldest:.0f} s."
    if oldest > STUCK_SECONDS:
        return fail(name, words, "Look at the log of the workers: they do not take what waits.")
    if oldest > SLOW_SECONDS:
        return warn(name, words, "Start more workers if it stays so.")
    return ok(name, words)


def look_at_disks() -> Iterator[Finding]:
    places = {"disk of var": settings.VAR, "disk of checkpoints": settings.DRAMATIS_CHECKPOINT_DIR}
    if connection.vendor == "sqlite":
        places["disk of the database"] = Path(str(connection.settings_dict["NAME"])).parent
    for name, place in places.items():
        yield room(name, nearest(Path(place)))


def room(name: str, place: Path) -> Finding:
    usage = shutil.disk_usage(place)
    share = usage.free / usage.total if usage.total else 0.0
    words = f"{usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.1f} ({share:.0%})."
    if share < FULL:
        return fail(
            name, words, "Make room now: when it is full nothing can be recorded, so nothing is served."
        )
    return warn(name, words, "Make room soon.") if share < TIGHT else ok(name, words)
