"""An installation for one proof: its own database, a web server and workers, all of which may be killed."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from project.supervisor.children import build_web_command
from tests.clients.live import HOST, free_port
from tests.database_dump import ready_database
from tests.personas.api.revocation_load import RequestSpec
from tests.project.backup.backup_stage import ROOT, empty_database
from tests.project.supervisor.first_start import copy_start
from tests.promises import FAULT
from tests.promises.forking import Nursery
from tests.promises.load import Wish, hear
from tests.workers import Worker, start_celery, wait_until_ready

UP_SECONDS, OK = 60.0, 200
IS_UP = Wish("up", RequestSpec("/healthz"))


@contextmanager
def migrated_database(folder: Path, vendor: str) -> Iterator[str]:
    """Create a migrated database, copied from the kept test database where that is faster."""
    if vendor == "postgresql":
        ready_database()
    with empty_database(folder, vendor, migrated=True) as url:
        if vendor == "sqlite":
            copy_start(Path(url.removeprefix("sqlite:///")))
        yield url


@dataclass
class House:
    """The settings and facts that the processes of one proof share."""

    folder: Path
    database: str
    redis: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    nurseries: dict[tuple[tuple[str, str], ...], Nursery] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "web.log"

    @property
    def environment(self) -> dict[str, str]:
        own = {"DATABASE_URL": self.database, "DRAMATIS_VAR": str(self.folder / "var")}
        own["PUBLIC_URL"] = self.url
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
        """Run a web server; only one at a time, because they share a port."""
        server = Web(self, self.nursery(more), {FAULT: fault} if fault else {})
        try:
            server.start()
            yield server
        finally:
            server.kill()

    def nursery(self, more: Mapping[str, str]) -> Nursery:
        """The fork server for these environment variables, which are read when the product is imported."""
        key = tuple(sorted(more.items()))
        if key not in self.nurseries:
            self.nurseries[key] = Nursery({**self.environment, **more}, self.log)
        return self.nurseries[key]

    def close(self) -> None:
        while self.nurseries:
            self.nurseries.popitem()[1].end()

    @contextmanager
    def jobs(self) -> Iterator[list[Worker]]:
        """Run a Celery worker and beat, with the commands of an operator."""
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
    """A granian server and its workers: one process group, killed together."""

    house: House
    nursery: Nursery
    more: Mapping[str, str]
    pid: int = 0

    @property
    def url(self) -> str:
        return self.house.url

    @property
    def log(self) -> Path:
        return self.house.log

    def start(self) -> None:
        product, own = "project.wsgi:application", "tests.promises.server_faults:application"
        command = [own if word == product else word for word in build_web_command(HOST, self.house.port)]
        self.pid = self.nursery.start(command, self.more, self.log)
        self.wait_until_up()

    def wait_until_up(self) -> None:
        connection = http.client.HTTPConnection(HOST, self.house.port, timeout=2)
        deadline = time.monotonic() + UP_SECONDS
        with closing(connection):
            while time.monotonic() < deadline and not self.nursery.has_ended(self.pid):
                if hear(connection, IS_UP).status == OK:
                    return
                connection.close()
                time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"The server did not start: {self.log.read_text()[-3_000:]}")

    def kill(self) -> None:
        if self.pid:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.nursery.wait(self.pid)
            self.pid = 0

    def processes(self) -> list[int]:
        """The process ids of the server and its workers; unchanged if none was restarted."""
        asked = ["ps", "-o", "pid=", "-g", str(self.pid)]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        return sorted(map(int, answer.stdout.split()))
