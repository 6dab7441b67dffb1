"""The product's Celery application, on request with slow verification or one planted fault."""

import os
import time
from collections.abc import Callable
from typing import Any

from celery.signals import task_prerun

from project.celery import app
from tests.promises import FAULT, VERIFICATION_SECONDS

__all__ = ["app"]


def one_queue() -> None:
    """R19: all kinds of jobs share one queue."""
    app.conf.task_routes = {}


VERIFICATION_JOB = "prompts.tasks.verify_chain_job"


@task_prerun.connect
def prolong_verification(sender: Any = None, **_: Any) -> None:
    if getattr(sender, "name", "") == VERIFICATION_JOB:
        time.sleep(float(os.environ.get(VERIFICATION_SECONDS, "0")))


WORKER_FAULTS: dict[str, Callable[[], None]] = {one_queue.__name__: one_queue}

if plant := WORKER_FAULTS.get(os.environ.get(FAULT, "")):
    plant()
