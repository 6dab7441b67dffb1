"""The product's Celery application, on request with slow verification or one planted fault."""

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from celery.signals import task_prerun

from project.celery import app
from tests.promises import FAULT, TEST_NAMES, VERIFICATION_SECONDS

__all__ = ["app"]


def one_queue() -> None:
    """R19: all kinds of jobs share one queue."""
    app.conf.task_routes = {}


VERIFICATION_JOB = "prompts.tasks.verify_chain_job"


@task_prerun.connect
def prolong_verification(sender: Any = None, **_: Any) -> None:
    if getattr(sender, "name", "") == VERIFICATION_JOB:
        time.sleep(float(os.environ.get(VERIFICATION_SECONDS, "0")))


def resolve_test_names(text: str) -> None:
    """Answer for the names of a test in place of the name server."""
    answers = {
        name: [answer.split(",") for answer in values.split("|")]
        for name, _, values in (entry.partition("=") for entry in text.split())
    }
    resolve = socket.getaddrinfo

    def answer(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        if host not in answers:
            return resolve(host, port, *arguments, **options)
        known = answers[host]
        addresses = known.pop(0) if len(known) > 1 else known[0]
        return [found for one in addresses for found in resolve(one, port, *arguments, **options)]

    vars(socket)["getaddrinfo"] = answer


WORKER_FAULTS: dict[str, Callable[[], None]] = {one_queue.__name__: one_queue}

if names := os.environ.get(TEST_NAMES):
    resolve_test_names(names)
if plant := WORKER_FAULTS.get(os.environ.get(FAULT, "")):
    plant()
