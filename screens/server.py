"""Run the product with its demo on a free port, with its own temporary data directory."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT = 180.0


class StartError(Exception):
    """The product did not start; the message is the end of its log."""


@contextmanager
def run_server() -> Iterator[str]:
    """Run the server and yield its address; this process gets the same settings, and so the same database."""
    with TemporaryDirectory(prefix="drm-shots-") as var:
        for name in ("DATABASE_URL", "REDIS_URL"):
            os.environ.pop(name, None)
        os.environ |= {"DRAMATIS_VAR": var, "DRAMATIS_ENV": "development", "LOG_LEVEL": "ERROR"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
        # Playwright's sync API runs an event loop, in which Django by default refuses ORM calls.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        port, log = free_port(), Path(var) / "shots.log"
        process = start_process(port, log)
        try:
            wait_until_ready(process, f"http://127.0.0.1:{port}/readyz", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def start_process(port: int, log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "manage.py", "up", "--port", str(port)]
    with log.open("wb") as output:
        return subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)  # noqa: S603 - our own program


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until_ready(process: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(address, timeout=10, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            # Not started yet.
            time.sleep(0.3)
    raise StartError(log.read_text(errors="replace")[-2_000:])
