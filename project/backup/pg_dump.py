"""Dump and restore PostgreSQL with pg_dump and pg_restore: one file in the custom format of pg_dump."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from django.conf import settings
from django.db import connection

from project.backup.checksums import EXCLUDED_TABLES, list_tables
from project.backup.errors import BackupError
from prompts.evidence.ledger.partitions import LEDGER_TABLE, is_ledger_partitioned

# Owners and privileges are not dumped, because the server restored to may have other roles. After a restore,
# `manage.py create_db_role` grants the privileges again.
COMMON_OPTIONS = ("--no-owner", "--no-privileges", "--no-password")
DUMP_FORMAT, DUMP_FILE = "pg_dump", "database.dump"
# Connection parameters and the environment variables of libpq that pass them to the programs. Environment
# variables are used because a password must not appear on a command line.
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
    """Return the path of a PostgreSQL program, or None if it is missing or too old.

    `server` is the oldest usable major version: a program cannot handle the data of a newer server.
    """
    path = shutil.which(name, path=settings.DRAMATIS_POSTGRES_PROGRAMS or None)
    return Path(path) if path and get_program_major_version(Path(path)) >= server else None


def get_program_major_version(program: Path) -> int:
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603  # named by the operator
    match = re.search(r"\s(\d+)", result.stdout)
    return int(match[1]) if match else 0


def get_server_major_version() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def build_pg_environment() -> dict[str, str]:
    params = connection.get_connection_params()
    variables = {
        variable: str(params[name]) for name, variable in CONNECTION_VARIABLES.items() if params.get(name)
    }
    return {**os.environ, **variables}


def start_pg_dump(program: Path, snapshot: str, folder: Path) -> DumpProcess:
    """Start pg_dump in the background, so that the caller can compute the checksums at the same time."""
    command: list[str | Path] = [program, "--format=custom", "--compress=1", *COMMON_OPTIONS]
    command += [f"--snapshot={snapshot}"] if snapshot else []
    # No other extension: the server restored to may not have Citus, whose metadata would name the old nodes.
    command += ["--extension=plpgsql"]
    command += [f"--exclude-table-data=public.{table}" for table in sorted(EXCLUDED_TABLES)]
    return subprocess.Popen(  # noqa: S603  # named by the operator
        [*command, "--file", folder / DUMP_FILE], env=build_pg_environment(), stderr=subprocess.PIPE
    )


def finish_pg_dump(process: DumpProcess) -> None:
    _, error_output = process.communicate()
    check_exit_code("pg_dump", process.returncode, error_output)


def drop_partitioned_ledger() -> None:
    """Drop the partitioned ledger table, which pg_restore --clean cannot drop.

    The caller must have checked that the table is empty.
    """
    if is_ledger_partitioned():
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {LEDGER_TABLE}")


def run_pg_restore(program: Path, folder: Path) -> None:
    """Restore the dump with pg_restore in one transaction."""
    drop_partitioned_ledger()
    # Clean only if there are tables. Without any, Citus refuses to drop policies, even with IF EXISTS.
    clean = ["--clean", "--if-exists"] if list_tables() else []
    connection.close()
    environment = build_pg_environment()
    command: list[str | Path] = [program, "--dbname", environment["PGDATABASE"], *COMMON_OPTIONS]
    command += [*clean, "--single-transaction", "--exit-on-error", folder / DUMP_FILE]
    result = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603  # see above
    check_exit_code("pg_restore", result.returncode, result.stderr)


def check_exit_code(name: str, code: int, error_output: bytes) -> None:
    if code:
        reason = " ".join(error_output.decode(errors="replace").split())[-600:]
        raise BackupError(f"{name} failed: {reason or f'exit code {code}'}")
