"""Requests by family, status and time: what each answer adds to the counters."""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

from celery.signals import task_postrun, task_prerun, worker_process_init
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch

from project.metrics import counters
from project.metrics.counters import Field

REQUESTS, TIMES, SECONDS = "requests", "times", "microseconds"
# Upper ends in seconds; what is slower falls into the last bucket, which has none.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
FETCH, UNKNOWN = "fetch", "unknown"
# What bots ask for is worth a family each; the rest of the API is one.
BOTS = {"prompt": FETCH, "render": "render", "batch-get": "batch"}
PLAIN = {"healthz": "health", "readyz": "health", "metrics": "metrics"}
ACCOUNTS = ("account", "mfa_", "usersessions", "invitation", "other-account", "profile")


def count_request(family: str, status: int, seconds: float) -> None:
    answer, time, total = fields(family, status, bisect_left(BUCKETS, seconds))
    counters.add({answer: 1, time: 1, total: int(seconds * 1_000_000)})


@cache
def fields(family: str, status: int, bucket: int) -> tuple[Field, Field, Field]:
    """There are few of them, and fetches are many."""
    return (REQUESTS, family, str(status)), (TIMES, family, str(bucket)), (SECONDS, family)


def family_of(match: ResolverMatch | None) -> str:
    """The part of the house an address leads to: from the names of routes, never from the address itself."""
    if match is None:
        return UNKNOWN
    name, room = match.url_name or "", match.namespaces[0] if match.namespaces else ""
    if room == "api":
        return BOTS.get(name, "api")
    if room:
        return "operator" if room == "admin" else room
    return PLAIN.get(name) or ("accounts" if name.startswith(ACCOUNTS) else "home")


class CountingMiddleware:
    """Stands outside of all that may refuse, so that refusals are counted too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        response = self.get_response(request)
        count_request(family_of(request.resolver_match), response.status_code, perf_counter() - began)
        return response


JOBS, JOB_SECONDS = "jobs", "job_microseconds"
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
    counters.add({(JOBS, job, (state or "lost").lower()): 1, (JOB_SECONDS, job): round(seconds * 1_000_000)})
