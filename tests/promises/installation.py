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
from urllib.parse import urlsplit

import httpx

from project.supervisor.children import build_web_command
from tests.clients.live import HOST, free_port
from tests.database_dump import ready_database
from tests.personas.api.revocation_load import RequestSpec
from tests.project.backup.backup_stage import ROOT, empty_database, manage
from tests.project.supervisor.first_start import copy_start
from tests.promises import FAULT
from tests.promises.forking import ForkServer
from tests.promises.load import LoadRequest, RequestFactory, send_request
from tests.pytest_servers import get_citus_cluster
from tests.workers import Worker, start_celery, wait_until_ready

UP_SECONDS, OK = 60.0, 200
# The longest time until an edit is served.
LIVE_SECONDS = 60.0
IS_UP = LoadRequest("up", RequestSpec("/healthz"))


@contextmanager
def migrated_database(folder: Path, vendor: str) -> Iterator[str]:
    """Create a migrated database, copied from the kept test database where that is faster."""
    if vendor == "postgresql":
        ready_database()
    with empty_database(folder, vendor, migrated=True) as url:
        if vendor == "sqlite":
            copy_start(Path(url.removeprefix("sqlite:///")))
        elif cluster := get_citus_cluster():
            cluster.connect_nodes(urlsplit(url).path.removeprefix("/"))
            # There is no template to copy on this server.
            for command in (["migrate", "-v0"], ["distribute", "--without-backup"]):
                done = manage(url, *command)
                assert done.returncode == 0, done.stderr[-3_000:]
        yield url


@dataclass
class Installation:
    """The settings and facts that the processes of one proof share."""

    folder: Path
    database: str
    redis: str = ""
    # Module that builds the data.
    scene_module: str = "tests.promises.scene"
    # Words before the command of web servers, such as `nsenter`.
    prefix: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    fork_servers: dict[tuple[tuple[str, str], ...], ForkServer] = field(default_factory=dict)

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
        # As in production; the tests that change the clock of their process turn it off.
        own["DRAMATIS_MAX_CLOCK_SKEW"] = "30"
        return own | ({"REDIS_URL": self.redis} if self.redis else {})

    def build(self) -> None:
        self.facts = self.scene("build")

    def scene(self, step: str) -> dict[str, Any]:
        command = [sys.executable, "-m", self.scene_module, step, str(self.folder)]
        variables = {**os.environ, **self.environment}
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts

    @contextmanager
    def web(self, fault: str = "", **more: str) -> "Iterator[Web]":
        """Run a web server; only one at a time, because they share a port."""
        server = Web(self, self.fork_server(more), {FAULT: fault} if fault else {})
        try:
            server.start()
            yield server
        finally:
            server.kill()

    def fork_server(self, more: Mapping[str, str]) -> ForkServer:
        """The fork server for these environment variables, which are read when the product is imported."""
        key = tuple(sorted(more.items()))
        if key not in self.fork_servers:
            self.fork_servers[key] = ForkServer({**self.environment, **more}, self.log, self.prefix)
        return self.fork_servers[key]

    def close(self) -> None:
        while self.fork_servers:
            self.fork_servers.popitem()[1].end()

    @contextmanager
    def jobs(self, application: str = "project", **more: str) -> Iterator[list[Worker]]:
        """Run a Celery worker and beat, with the commands of an operator."""
        log, workers = self.folder / "jobs", []
        arguments = [
            "worker",
            "--concurrency",
            "1",
            "--without-gossip",
            "--without-mingle",
            "--loglevel",
            "INFO",
        ]
        try:
            environment = self.environment | more
            workers.append(start_celery(log.with_suffix(".worker"), application, arguments, environment))
            wait_until_ready(workers[0])
            schedule = ["--schedule", str(log.with_suffix(".schedule"))]
            beat = ["beat", "--pidfile=", *schedule, "--loglevel", "INFO"]
            workers.append(start_celery(log.with_suffix(".beat"), "project", beat, self.environment))
            yield workers
        finally:
            for worker in workers:
                worker.kill()


@dataclass
class Web:
    """A granian server and its workers: one process group, killed together."""

    installation: Installation
    fork_server: ForkServer
    more: Mapping[str, str]
    pid: int = 0

    @property
    def url(self) -> str:
        return self.installation.url

    @property
    def log(self) -> Path:
        return self.installation.log

    def start(self) -> None:
        product, own = "project.wsgi:application", "tests.promises.server_faults:application"
        command = [
            own if word == product else word for word in build_web_command(HOST, self.installation.port)
        ]
        self.pid = self.fork_server.start(command, self.more, self.log)
        self.wait_until_up()

    def wait_until_up(self) -> None:
        connection = http.client.HTTPConnection(HOST, self.installation.port, timeout=2)
        deadline = time.monotonic() + UP_SECONDS
        with closing(connection):
            while time.monotonic() < deadline and not self.fork_server.has_ended(self.pid):
                if send_request(connection, IS_UP).status == OK:
                    return
                connection.close()
                time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"The server did not start: {self.log.read_text()[-3_000:]}")

    def kill(self) -> None:
        if self.pid:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.fork_server.wait(self.pid)
            self.pid = 0

    def processes(self) -> list[int]:
        """The process ids of the server and its workers; unchanged if none was restarted."""
        command = ["ps", "-o", "pid=", "-g", str(self.pid)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        return sorted(map(int, answer.stdout.split()))


def edit_now(web: Web, text: str) -> None:
    """Edit an agent that the load does not edit."""
    request = RequestFactory(web.installation.facts).edit(-1, text)
    answer = httpx.request(
        request.spec.method,
        web.url + request.spec.path,
        headers=dict(request.spec.headers),
        content=request.spec.body,
    )
    assert answer.status_code == OK


def seconds_until_live(web: Web, text: str) -> float:
    """Fetch the edited agent until it has this text, at most a minute and a half."""
    request, began = RequestFactory(web.installation.facts).fetch(-1), time.monotonic()
    with httpx.Client() as client:
        while time.monotonic() - began < LIVE_SECONDS * 1.5:
            answer = client.get(web.url + request.spec.path, headers=dict(request.spec.headers))
            if text in answer.text:
                break
            time.sleep(0.2)
    return time.monotonic() - began
