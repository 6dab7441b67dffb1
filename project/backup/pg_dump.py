"""PostgreSQL's own programs: one file in their custom format, of the very moment that we hold."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from django.conf import settings
from django.db import connection

from project.backup.checksums import PASSING
from project.backup.errors import BackupError
from prompts.ledger.partitions import LEDGER, is_by_month

# Roles are of a server, not of a database: who may what is said anew by `manage.py app_role`.
PLAIN = ("--no-owner", "--no-privileges", "--no-password")
FORM, FILE = "pg_dump", "database.dump"
# The words of a Django connection, and what the programs call them; no password on a command line.
VARIABLES = {
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "host": "PGHOST",
    "port": "PGPORT",
    "service": "PGSERVICE",
    "passfile": "PGPASSFILE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}

Dump = subprocess.Popen[bytes]


def usable_program(name: str, server: int) -> Path | None:
    """The program, unless it is older than the server: then it refuses, or would leave things out."""
    found = shutil.which(name, path=settings.DRAMATIS_POSTGRES_PROGRAMS or None)
    return Path(found) if found and major(Path(found)) >= server else None


def major(program: Path) -> int:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603  # named by the operator
    said = re.search(r"\s(\d+)", done.stdout)
    return int(said[1]) if said else 0


def server_major() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def environment() -> dict[str, str]:
    told = connection.get_connection_params()
    return {**os.environ, **{name: str(told[word]) for word, name in VARIABLES.items() if told.get(word)}}


def begin_dump(program: Path, moment: str, folder: Path) -> Dump:
    """Runs beside us: while it writes, we count."""
    command: list[str | Path] = [program, "--format=custom", "--compress=1", *PLAIN]
    command += [f"--snapshot={moment}"] if moment else []
    command += [f"--exclude-table-data=public.{table}" for table in sorted(PASSING)]
    return subprocess.Popen(  # noqa: S603  # named by the operator
        [*command, "--file", folder / FILE], env=environment(), stderr=subprocess.PIPE
    )


def end_dump(process: Dump) -> None:
    _, said = process.communicate()
    refuse_failure("pg_dump", process.returncode, said)


def make_way() -> None:
    """The program cannot take a table apart that lies in several; it has no rows, or we would not be here."""
    if is_by_month():
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {LEDGER}")


def load(program: Path, folder: Path) -> None:
    """In one transaction: all of it, or nothing."""
    make_way()
    connection.close()
    told = environment()
    command: list[str | Path] = [program, "--dbname", told["PGDATABASE"], *PLAIN]
    command += ["--clean", "--if-exists", "--single-transaction", "--exit-on-error", folder / FILE]
    done = subprocess.run(command, env=told, capture_output=True, check=False)  # noqa: S603  # see above
    refuse_failure("pg_restore", done.returncode, done.stderr)


def refuse_failure(name: str, code: int, said: bytes) -> None:
    if code:
        reason = " ".join(said.decode(errors="replace").split())[-600:]
        raise BackupError(f"{name} failed: {reason or f'it ended with {code}'}")
