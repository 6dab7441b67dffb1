"""Count requests (by route family, status and duration) and Celery jobs."""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_process_init
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch

from project.metrics import counters
from project.metrics.counters import CounterField

REQUEST_COUNT, REQUEST_TIME_BUCKETS, REQUEST_MICROSECONDS = "requests", "times", "microseconds"
# Upper bounds in seconds; slower requests fall into the last bucket, which is unbounded.
BUCKET_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
FETCH_FAMILY, UNKNOWN_FAMILY = "fetch", "unknown"
# A family is a group of routes that are counted together. Each API route that bots use is a family of its
# own; all other API routes are one family.
BOT_FAMILIES = {"prompt": FETCH_FAMILY, "render": "render", "batch-get": "batch"}
SYSTEM_FAMILIES = {"healthz": "health", "readyz": "health", "metrics": "metrics"}
ACCOUNT_ROUTE_PREFIXES = ("account", "mfa_", "usersessions", "invitation", "other-account", "profile")


def count_request(family: str, status: int, seconds: float) -> None:
    count, bucket, total = get_request_fields(family, status, bisect_left(BUCKET_SECONDS, seconds))
    counters.add_counts({count: 1, bucket: 1, total: int(seconds * 1_000_000)})


@cache
def get_request_fields(
    family: str, status: int, bucket: int
) -> tuple[CounterField, CounterField, CounterField]:
    """Return the counter fields of a request. Cached, because it runs for every fetch."""
    return (
        (REQUEST_COUNT, family, str(status)),
        (REQUEST_TIME_BUCKETS, family, str(bucket)),
        (REQUEST_MICROSECONDS, family),
    )


def get_route_family(match: ResolverMatch | None) -> str:
    """Return the family of a route. It is derived from the route's name, because a path may contain ids."""
    if match is None:
        return UNKNOWN_FAMILY
    name, namespace = match.url_name or "", match.namespaces[0] if match.namespaces else ""
    if namespace == "api":
        return BOT_FAMILIES.get(name, "api")
    if namespace:
        return "operator" if namespace == "admin" else namespace
    return SYSTEM_FAMILIES.get(name) or ("accounts" if name.startswith(ACCOUNT_ROUTE_PREFIXES) else "home")


class RequestMetricsMiddleware:
    """Count requests. It comes before middleware that rejects requests, so that rejections count too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started_at = perf_counter()
        response = self.get_response(request)
        seconds = perf_counter() - started_at
        count_request(get_route_family(request.resolver_match), response.status_code, seconds)
        return response


JOB_COUNT, JOB_MICROSECONDS = "jobs", "job_microseconds"
_job_start_times: dict[str, float] = {}


@worker_process_init.connect
def enable_worker_counters(**_: Any) -> None:
    counters.start_counting()


@task_prerun.connect
def record_job_start(task_id: str = "", **_: Any) -> None:
    _job_start_times[task_id] = perf_counter()


@task_postrun.connect
def count_job(task_id: str = "", task: Any = None, state: str | None = None, **_: Any) -> None:
    seconds = perf_counter() - _job_start_times.pop(task_id, perf_counter())
    job = str(task.name).rpartition(".")[2]
    counters.add_counts(
        {(JOB_COUNT, job, (state or "lost").lower()): 1, (JOB_MICROSECONDS, job): round(seconds * 1_000_000)}
    )
