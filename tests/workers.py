"""Real Celery processes for tests: worker and beat."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection
from kombu import pools

from project.celery import app
from project.redis_client import build_celery_url
from project.supervisor.supervisor import signal_process_group, start_process

START_SECONDS = 120.0
NOTHING: Mapping[str, str] = {}


@dataclass
class Worker:
    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        """Kill the main process and its pool together; a worker needs over five seconds to stop by itself."""
        signal_process_group(self.process, signal.SIGKILL)
        self.process.wait()

    def pool(self) -> list[int]:
        """The ids of the pool processes."""
        answer = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in answer.stdout.split()]


def start_worker(
    log: Path, *, application: str = "project", environment: Mapping[str, str] = NOTHING
) -> Worker:
    app.control.purge()
    worker = ["worker", "--concurrency", "1", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    process = start_celery(log, application, worker, environment)
    wait_until_ready(process)
    return process


def start_beat(log: Path, *, environment: Mapping[str, str] = NOTHING) -> Worker:
    arguments = ["beat", "--pidfile=", "--schedule", str(log.with_suffix(".schedule")), "--loglevel", "INFO"]
    return start_celery(log, "project", arguments, environment)


def start_celery(log: Path, application: str, arguments: list[str], environment: Mapping[str, str]) -> Worker:
    return start_command(log, ["-m", "celery", "-A", application, *arguments], environment)


def start_command(log: Path, arguments: list[str], environment: Mapping[str, str]) -> Worker:
    """Start Python with the test database."""
    variables = {**os.environ, "DATABASE_URL": url_of_test_database(), **environment}
    with log.open("wb") as output:
        return Worker(start_process([sys.executable, *arguments], env=variables, output=output), log)


def wait_until_ready(worker: Worker) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and worker.process.poll() is None:
        if "ready." in worker.log.read_text():
            return
        time.sleep(0.1)
    worker.kill()
    raise RuntimeError(f"The Celery worker did not start: {worker.log.read_text()[-3_000:]}")


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until the result is true; return the last result."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer


@contextlib.contextmanager
def talking_to(url: str) -> Iterator[None]:
    """Send the jobs of this process to another broker."""
    before = app.conf.broker_url
    point_to(build_celery_url(url))
    try:
        yield
    finally:
        point_to(before)


def point_to(url: str) -> None:
    app.conf["broker_url"] = url
    # Kombu pools connections by URL, including closed ones; both pools are created again on next use.
    pools.reset()
    vars(app)["_pool"] = vars(app.amqp)["_producer_pool"] = None


def url_of_test_database() -> str:
    """The URL of the test database, which differs from DATABASE_URL."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return re.sub(r"(?<=[^/]/)[^/?]+(?=\?|$)", name, os.environ["DATABASE_URL"], count=1)
