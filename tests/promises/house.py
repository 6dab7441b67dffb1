"""A server of the product on a database of its own, with workers if need be; all of it may be harmed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from project.launch import web_command
from project.processes import signal_group, start
from tests.clients.live import HOST, free_port
from tests.prepared import ready_database
from tests.project.backup_stage import ROOT, empty_database
from tests.promises import FAULT
from tests.workers import Worker, start_celery, wait_until_ready

UP_SECONDS = 60.0


@contextmanager
def migrated_database(folder: Path, vendor: str) -> Iterator[str]:
    """A database of its own; copied from the one that the tests keep, where that is quicker."""
    if vendor == "postgresql":
        ready_database()
    with empty_database(folder, vendor, migrated=True) as url:
        yield url


@dataclass
class House:
    """What the processes of one proof share."""

    folder: Path
    database: str
    redis: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        own = {"DATABASE_URL": self.database, "DRAMATIS_VAR": str(self.folder / "var")}
        return own | ({"REDIS_URL": self.redis} if self.redis else {})

    def build(self) -> None:
        self.facts = self.scene("build")

    def scene(self, step: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "tests.promises.scene", step, str(self.folder)]
        told = {**os.environ, **self.environment}
        done = subprocess.run(
            command, env=told, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    @contextmanager
    def web(self, fault: str = "", **more: str) -> "Iterator[Web]":
        server = Web(self, {**({FAULT: fault} if fault else {}), **more})
        try:
            server.start()
            yield server
        finally:
            server.kill()

    @contextmanager
    def jobs(self) -> Iterator[list[Worker]]:
        """The worker and the schedule, as an operator starts them."""
        log, made = self.folder / "jobs", []
        words = ["worker", "--concurrency", "1", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
        try:
            made.append(start_celery(log.with_suffix(".worker"), "project", words, self.environment))
            wait_until_ready(made[0])
            schedule = ["--schedule", str(log.with_suffix(".schedule"))]
            beat = ["beat", "--pidfile=", *schedule, "--loglevel", "INFO"]
            made.append(start_celery(log.with_suffix(".beat"), "project", beat, self.environment))
            yield made
        finally:
            for one in made:
                one.kill()


@dataclass
class Web:
    """granian and what it started: one group, killed at one blow."""

    house: House
    more: Mapping[str, str]
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.house.folder / f"web-{self.port}.log"

    def start(self) -> None:
        told = {**os.environ, **self.house.environment, "PUBLIC_URL": self.url, **self.more}
        product, own = "project.wsgi:application", "tests.promises.door:application"
        command = [own if word == product else word for word in web_command(HOST, self.port)]
        with self.log.open("ab") as output:
            self.process = start(command, env=told, output=output)
        self.wait_until_up()

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + UP_SECONDS
        while time.monotonic() < deadline and self.process is not None and self.process.poll() is None:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/healthz", timeout=2).status_code == 200:
                    return
            time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"The server did not start: {self.log.read_text()[-3_000:]}")

    def kill(self) -> None:
        if self.process is not None:
            signal_group(self.process, signal.SIGKILL)
            self.process.wait()

    def processes(self) -> list[int]:
        """The server and its workers; the same list twice means that none was started anew."""
        assert self.process is not None
        asked = ["ps", "-o", "pid=", "-g", str(self.process.pid)]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        return sorted(map(int, answer.stdout.split()))
