"""The product with its demo, alone on a free port and with a scratch directory of its own."""

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
PATIENCE = 180.0


class NotReady(Exception):
    """The product did not start; the words are the end of what it said."""


@contextmanager
def product() -> Iterator[str]:
    """Its address, while it runs; this process gets the same settings, and so the same database."""
    with TemporaryDirectory(prefix="drm-shots-") as var:
        for name in ("DATABASE_URL", "REDIS_URL"):
            os.environ.pop(name, None)
        os.environ |= {"DRAMATIS_VAR": var, "DRAMATIS_ENV": "development", "LOG_LEVEL": "ERROR"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
        # Playwright's sync interface runs an event loop, and Django then refuses the ORM beside it.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        port, log = free_port(), Path(var) / "shots.log"
        process = started(port, log)
        try:
            await_answer(process, f"http://127.0.0.1:{port}/readyz", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def started(port: int, log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "manage.py", "up", "--port", str(port)]
    with log.open("wb") as words:
        return subprocess.Popen(command, cwd=ROOT, stdout=words, stderr=words)  # noqa: S603 - our own program


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def await_answer(process: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            if httpx.get(address, timeout=10, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            # Not yet.
            time.sleep(0.3)
    raise NotReady(log.read_text(errors="replace")[-2_000:])
