"""Jobs by name and outcome, counted where workers run them."""

from time import perf_counter
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_process_init

from project.metrics import counters

JOBS, SECONDS = "jobs", "job_microseconds"
_began: dict[str, float] = {}


@worker_process_init.connect
def count_from_now_on(**_: Any) -> None:
    counters.begin()


@task_prerun.connect
def note_beginning(task_id: str = "", **_: Any) -> None:
    _began[task_id] = perf_counter()


@task_postrun.connect
def count_job(task_id: str = "", task: Any = None, state: str | None = None, **_: Any) -> None:
    seconds = perf_counter() - _began.pop(task_id, perf_counter())
    job = str(task.name).rpartition(".")[2]
    counters.add({(JOBS, job, (state or "lost").lower()): 1, (SECONDS, job): round(seconds * 1_000_000)})
