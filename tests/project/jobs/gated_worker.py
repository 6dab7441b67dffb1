"""The product's Celery worker with a job that a test can block.

`celery -A tests.project.jobs.gated_worker worker`
"""

import os
import time
from pathlib import Path

from celery.worker.consumer import Consumer

from project.celery import app
from tests.promises import FAULT

__all__ = ["app", "block_job", "touch_job"]

if os.environ.get(FAULT):
    app.conf.worker_consumer = Consumer


@app.task
def block_job(gate: str) -> None:
    """Wait while the file `gate` exists."""
    Path(gate).with_suffix(".reached").touch()
    while Path(gate).exists():
        time.sleep(0.02)
    Path(gate).with_suffix(".done").touch()


@app.task
def touch_job(path: str) -> None:
    Path(path).touch()
