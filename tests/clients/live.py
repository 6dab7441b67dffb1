"""The real server in a separate process, which tests can kill and restart on the same port."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
from django.db import connection

from project.supervisor.children import build_web_command
from project.supervisor.supervisor import signal_process_group, start_process
from tests.frozen_process import freeze, thaw
from tests.promises import FAULT
from tests.workers import url_of_test_database

HOST = "127.0.0.1"
PRODUCT_APPLICATION = "project.wsgi:application"
FAULTY_APPLICATION = "tests.promises.server_faults:application"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class LiveServer:
    """A granian server on the test database."""

    log: Path
    port: int = field(default_factory=free_port)
    # A fault that tests/promises/server_faults.py plants in the product of this process; empty for none.
    fault: str = ""
    # Further environment variables.
    environment: dict[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def name(self) -> str:
        """The application_name of its database connections."""
        return f"dramatis-live-{self.port}"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        settings = {"DATABASE_URL": url_of_test_database(), "PUBLIC_URL": self.url, "PGAPPNAME": self.name}
        settings |= self.environment
        command = build_web_command(HOST, self.port)
        if self.fault:
            settings[FAULT] = self.fault
            command = [FAULTY_APPLICATION if part == PRODUCT_APPLICATION else part for part in command]
        with self.log.open("ab") as output:
            self.process = start_process(command, env={**os.environ, **settings}, output=output)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.is_running:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/healthz", timeout=2).status_code == 200:
                    return
            time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"The server did not start: {self.log.read_text()[-3_000:]}")

    def kill(self) -> None:
        """Send SIGKILL to the server and its workers."""
        if self.process is not None:
            signal_process_group(self.process, signal.SIGKILL)
            self.process.wait()

    def is_disconnected(self) -> bool:
        """Return whether its database connections are closed."""
        if connection.vendor != "postgresql":
            return True
        with psycopg.connect(os.environ["DATABASE_URL"]) as database:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
            return database.execute(query, [self.name]).fetchone() == (0,)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Suspend the process: it accepts connections but sends no responses."""
        assert self.process is not None
        freeze(self.process)
        try:
            yield
        finally:
            thaw(self.process)
