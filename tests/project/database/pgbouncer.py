"""A real PgBouncer in front of the test server, with the configuration of docs/examples/pgbouncer.ini."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from project.supervisor.supervisor import set_parent_death_signal
from tests.clients.live import HOST, free_port
from tests.servers import unprivileged

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "pgbouncer.ini"
PASSWORD = "words of the pooler"
UP_SECONDS = 60.0


def find_pgbouncer() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


needs_pgbouncer = [
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="needs PostgreSQL"),
    pytest.mark.skipif(
        find_pgbouncer() is None,
        reason="NOT RUN: PgBouncer is not installed (apt-get install pgbouncer)",
    ),
]


@dataclass(frozen=True)
class Pooler:
    """A running PgBouncer: its port, the role that may log in, and its log."""

    port: int
    role: str
    log: Path

    def url(self, database: str) -> str:
        return f"postgresql://{self.role}:{quote(PASSWORD)}@{HOST}:{self.port}/{database}"

    def settings(self) -> dict[str, Any]:
        """What differs from the settings of a direct connection."""
        return {"USER": self.role, "PASSWORD": PASSWORD, "HOST": HOST, "PORT": str(self.port)}

    def console(self, command: str) -> list[dict[str, Any]]:
        """Run a command of the administration console."""
        connection = psycopg.connect(
            self.url("pgbouncer"), autocommit=True, cursor_factory=psycopg.ClientCursor
        )
        with connection, connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute(command)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def run_pgbouncer(server_url: str, role: str, **options: str) -> Iterator[Pooler]:
    """Run PgBouncer in front of a server, for one role; `options` replace those of the example."""
    folder = Path(tempfile.mkdtemp(prefix="drm-pgb-"))
    account, port, program = unprivileged(), free_port(), find_pgbouncer()
    assert program is not None
    (folder / "users").write_text(f'"{role}" "{PASSWORD}"\n')
    write_configuration(folder, server_url, port, {"admin_users": role, **options})
    if account:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, account["user"], account["group"])
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, folder / "pgbouncer.ini"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=set_parent_death_signal,
            **account,
        )
    try:
        pooler = Pooler(port, role, log)
        wait_until_up(pooler, process)
        yield pooler
    finally:
        process.kill()
        process.wait(UP_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def write_configuration(folder: Path, server_url: str, port: int, options: dict[str, str]) -> None:
    """Write the example of the documentation, with another server, address and pool size."""
    config = ConfigParser(comment_prefixes=(";",), interpolation=None)
    config.read_string(EXAMPLE.read_text())
    server = conninfo_to_dict(server_url)
    config["databases"] = {"*": f"host={server['host']} port={server.get('port', 5432)}"}
    config["pgbouncer"].update(
        {
            "listen_addr": HOST,
            "listen_port": str(port),
            "unix_socket_dir": "",
            "auth_file": str(folder / "users"),
            **options,
        }
    )
    with (folder / "pgbouncer.ini").open("w") as file:
        config.write(file)


def wait_until_up(pooler: Pooler, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + UP_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            psycopg.connect(pooler.url("pgbouncer"), connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"PgBouncer did not start: {pooler.log.read_text()[-2_000:]}")
