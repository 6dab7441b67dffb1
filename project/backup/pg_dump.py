"""PostgreSQL's own programs: one file in their custom format, of the very moment that we hold."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from django.conf import settings
from django.db import connection

from project.backup.checksums import EXCLUDED_TABLES
from project.backup.errors import BackupError
from prompts.ledger.partitions import LEDGER_TABLE, is_ledger_partitioned

# Roles are of a server, not of a database: who may what is said anew by `manage.py create_db_role`.
COMMON_OPTIONS = ("--no-owner", "--no-privileges", "--no-password")
DUMP_FORMAT, DUMP_FILE = "pg_dump", "database.dump"
# The words of a Django connection, and what the programs call them; no password on a command line.
CONNECTION_VARIABLES = {
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

DumpProcess = subprocess.Popen[bytes]


def find_program(name: str, server: int) -> Path | None:
    """The program, unless it is older than the server: then it refuses, or would leave things out."""
    found = shutil.which(name, path=settings.DRAMATIS_POSTGRES_PROGRAMS or None)
    return Path(found) if found and get_program_major_version(Path(found)) >= server else None


def get_program_major_version(program: Path) -> int:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603  # named by the operator
    said = re.search(r"\s(\d+)", done.stdout)
    return int(said[1]) if said else 0


def get_server_major_version() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def build_pg_environment() -> dict[str, str]:
    told = connection.get_connection_params()
    return {
        **os.environ,
        **{name: str(told[word]) for word, name in CONNECTION_VARIABLES.items() if told.get(word)},
    }


def start_pg_dump(program: Path, moment: str, folder: Path) -> DumpProcess:
    """Runs beside us: while it writes, we count."""
    command: list[str | Path] = [program, "--format=custom", "--compress=1", *COMMON_OPTIONS]
    command += [f"--snapshot={moment}"] if moment else []
    command += [f"--exclude-table-data=public.{table}" for table in sorted(EXCLUDED_TABLES)]
    return subprocess.Popen(  # noqa: S603  # named by the operator
        [*command, "--file", folder / DUMP_FILE], env=build_pg_environment(), stderr=subprocess.PIPE
    )


def finish_pg_dump(process: DumpProcess) -> None:
    _, said = process.communicate()
    check_exit_code("pg_dump", process.returncode, said)


def drop_partitioned_ledger() -> None:
    """The program cannot take a table apart that lies in several; it has no rows, or we would not be here."""
    if is_ledger_partitioned():
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {LEDGER_TABLE}")


def run_pg_restore(program: Path, folder: Path) -> None:
    """In one transaction: all of it, or nothing."""
    drop_partitioned_ledger()
    connection.close()
    told = build_pg_environment()
    command: list[str | Path] = [program, "--dbname", told["PGDATABASE"], *COMMON_OPTIONS]
    command += ["--clean", "--if-exists", "--single-transaction", "--exit-on-error", folder / DUMP_FILE]
    done = subprocess.run(command, env=told, capture_output=True, check=False)  # noqa: S603  # see above
    check_exit_code("pg_restore", done.returncode, done.stderr)


def check_exit_code(name: str, code: int, said: bytes) -> None:
    if code:
        reason = " ".join(said.decode(errors="replace").split())[-600:]
        raise BackupError(f"{name} failed: {reason or f'it ended with {code}'}")
