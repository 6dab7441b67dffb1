"""A real Celery worker process for tests."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

from project.celery import app
from project.processes import signal_group, start

START_SECONDS = 20.0


@dataclass
class Worker:
    process: "subprocess.Popen[bytes]"
    log: Path

    def stop(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        signal_group(self.process, signal.SIGKILL)
        self.process.wait()


def start_worker(log: Path) -> Worker:
    app.control.purge()
    command = [sys.executable, "-m", "celery", "-A", "project", "worker", "--concurrency", "1"]
    command += ["--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    with log.open("wb") as output:
        process = start(command, env=os.environ | {"DATABASE_URL": url_of_test_database()}, output=output)
    worker = Worker(process, log)
    wait_until_ready(worker)
    return worker


def wait_until_ready(worker: Worker) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and worker.process.poll() is None:
        if "ready." in worker.log.read_text():
            return
        time.sleep(0.1)
    worker.stop()
    raise RuntimeError(f"The Celery worker did not start: {worker.log.read_text()[-3_000:]}")


def url_of_test_database() -> str:
    """The address of the database the tests use, which is not the one they were given."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return re.sub(r"(?<=[^/]/)[^/?]+(?=\?|$)", name, os.environ["DATABASE_URL"], count=1)
