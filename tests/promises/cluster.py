"""A separate PostgreSQL cluster with production durability, which a test can stop and start."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from project.supervisor.supervisor import set_parent_death_signal
from tests.database_dump import kept_dump, run
from tests.servers import postgres_programs, unprivileged

UP_SECONDS = 30.0
# The signals of `pg_ctl stop -m`.
MODES = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


@dataclass
class Cluster:
    """The data directory, the programs, and the server process while it runs."""

    directory: Path
    programs: Path
    # Further arguments of the server.
    arguments: tuple[str, ...] = ()
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.directory}"

    def start(self) -> float:
        """Start the server; return the time at which it accepts connections."""
        command: list[str | Path] = [self.programs / "postgres", "-D", self.directory / "data"]
        command += ["-k", self.directory, "-c", "listen_addresses=", *self.arguments]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                preexec_fn=set_parent_death_signal,
                **unprivileged(),
            )
        return self.wait_until_up()

    def wait_until_up(self) -> float:
        deadline = time.monotonic() + UP_SECONDS
        while time.monotonic() < deadline:
            try:
                with psycopg.connect(self.url, connect_timeout=2):
                    return time.monotonic()
            except psycopg.OperationalError:
                time.sleep(0.02)
        raise RuntimeError(f"PostgreSQL did not start: {(self.directory / 'log').read_text()[-2_000:]}")

    def load_tables(self) -> None:
        """Load the kept dump of an earlier run, if there is one: then there is nothing left to migrate."""
        if kept_dump().exists():
            run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", kept_dump(), self.url)

    def stop(self, mode: str) -> None:
        assert self.process is not None
        self.process.send_signal(MODES[mode])
        self.process.wait(UP_SECONDS)


@contextmanager
def cluster(*arguments: str) -> Iterator[Cluster]:
    directory = Path(tempfile.mkdtemp(prefix="drm-own-"))
    account = unprivileged()
    programs = postgres_programs(directory)
    if account:
        shutil.chown(directory, account["user"], account["group"])
    instance = Cluster(directory, programs, arguments)
    initdb: list[str | Path] = [
        programs / "initdb",
        "-D",
        directory / "data",
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
    ]
    quiet: dict[str, Any] = {"cwd": directory, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    try:
        subprocess.run([*initdb, "--no-sync", "--no-instructions"], check=True, **quiet, **account)
        instance.start()
        yield instance
    finally:
        if instance.process is not None and instance.process.poll() is None:
            instance.stop("immediate")
        shutil.rmtree(directory, ignore_errors=True)
