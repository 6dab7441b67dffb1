"""The product's Celery application with one planted fault on request."""

import os
from collections.abc import Callable

from project.celery import app
from tests.promises import FAULT

__all__ = ["app"]


def one_queue() -> None:
    """R19: all kinds of jobs share one queue."""
    app.conf.task_routes = {}


WORKER_FAULTS: dict[str, Callable[[], None]] = {one_queue.__name__: one_queue}

if plant := WORKER_FAULTS.get(os.environ.get(FAULT, "")):
    plant()
