"""Beat runs every job soon after a start, also if its schedule file was lost."""

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import time_machine
from celery.beat import PersistentScheduler
from django.conf import settings
from django.utils import timezone

from project.celery import app
from project.jobs.beat import LivenessScheduler

pytestmark = [pytest.mark.promise("R18"), pytest.mark.slow]
MINUTE = timedelta(minutes=1)
SIGNING = "prompts.tasks.sign_checkpoints_job"


def run_beat(
    scheduler_class: type[PersistentScheduler], schedule: Path, start: datetime, minutes: int
) -> list[tuple[str, datetime]]:
    """Run a scheduler for so many minutes of simulated time; return the jobs that it sends."""
    sent: list[tuple[str, datetime]] = []

    class RecordingScheduler(scheduler_class):  # type: ignore[misc, valid-type]
        def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> None:
            sent.append((entry.task, timezone.now()))
            self.reserve(entry)

    with time_machine.travel(start, tick=False) as clock:
        scheduler = RecordingScheduler(app, schedule_filename=str(schedule))
        for _ in range(minutes * 2):
            while scheduler.tick() == 0:
                pass
            clock.shift(MINUTE / 2)
        scheduler.close()
    return sent


def longest_gap(scheduler_class: type[PersistentScheduler], folder: Path, *, keep_file: bool) -> timedelta:
    """Restart beat every 50 minutes for five hours; return the longest time without a signing job."""
    start = timezone.now()
    times = [start]
    for number in range(6):
        schedule = folder / ("schedule" if keep_file else f"schedule{number}")
        sent = run_beat(scheduler_class, schedule, start + number * 50 * MINUTE, 50)
        times += [at for task, at in sent if task == SIGNING]
    times.append(start + 300 * MINUTE)
    return max(later - earlier for earlier, later in pairwise(times))


@pytest.fixture
def hourly_signing(monkeypatch):
    """Signing every hour, as it was once: then a restart every 50 minutes matters most."""
    hourly = settings.CELERY_BEAT_SCHEDULE["sign-checkpoints"] | {"schedule": 3_600.0}
    monkeypatch.setitem(app.conf.beat_schedule, "sign-checkpoints", hourly)


@pytest.mark.parametrize("keep_file", [True, False])
def test_a_beat_that_is_restarted_every_50_minutes_signs_within_the_hour(tmp_path, hourly_signing, keep_file):
    assert longest_gap(LivenessScheduler, tmp_path, keep_file=keep_file) <= 61 * MINUTE


def test_with_the_real_schedule_signing_is_due_every_five_minutes(tmp_path):
    assert longest_gap(LivenessScheduler, tmp_path, keep_file=False) <= 6 * MINUTE


def test_every_job_runs_within_a_minute_after_the_start(tmp_path):
    sent = run_beat(LivenessScheduler, tmp_path / "schedule", timezone.now(), 1)
    assert {task for task, _ in sent} >= {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


def test_a_kept_schedule_repeats_no_job_before_its_time(tmp_path):
    start = timezone.now()
    run_beat(LivenessScheduler, tmp_path / "schedule", start, 2)
    sent = run_beat(LivenessScheduler, tmp_path / "schedule", start + 2 * MINUTE, 2)
    assert "prompts.tasks.expire_ledger_job" not in {task for task, _ in sent}


@pytest.mark.planted
def test_a_beat_that_waits_a_full_interval_after_each_start_is_found(tmp_path, hourly_signing):
    assert longest_gap(PersistentScheduler, tmp_path, keep_file=False) > 120 * MINUTE
