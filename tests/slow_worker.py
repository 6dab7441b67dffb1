"""The product's Celery worker with a refresh that a test can block: `celery -A tests.slow_worker worker`."""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from celery.signals import worker_process_init

from project.celery import app

__all__ = ["GATE", "LEASE", "app"]

# Environment variable: while this file exists, a refresh waits after it has read all files.
GATE = "TEST_GATE"
LEASE = "TEST_LEASE"


@worker_process_init.connect
def block_refreshes(**_: Any) -> None:
    from skills.refresh import runs
    from skills.refresh import services as refresh_services

    discover = refresh_services.discover_source
    gate = Path(os.environ[GATE])

    def discover_and_wait(*args: Any) -> Any:
        result = discover(*args)
        gate.with_suffix(".reached").touch()
        while gate.exists():
            time.sleep(0.02)
        return result

    vars(refresh_services)["discover_source"] = discover_and_wait
    if LEASE in os.environ:
        vars(runs)["LEASE_DURATION"] = timedelta(seconds=float(os.environ[LEASE]))
