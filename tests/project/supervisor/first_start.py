"""Cached SQLite file of a first start, because creating it is slow; valid until a migration changes."""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.database_dump import fingerprint
from tests.project.backup.backup_stage import manage
from tests.project.deployment.production_settings import ROOT


def kept_start() -> Path:
    return ROOT / "var" / f"test-start-{fingerprint()}.sqlite3"


def copy_start(place: Path) -> None:
    """Copy the cached file, which has all tables and no rows. The first process creates it; others wait."""
    with locked_start():
        if not kept_start().exists():
            create_start()
        shutil.copy(kept_start(), place)


def create_start() -> None:
    with TemporaryDirectory() as folder:
        database = Path(folder) / "start.sqlite3"
        done = manage(f"sqlite:///{database}", "migrate", "-v0", DRAMATIS_VAR=folder)
        assert done.returncode == 0, done.stderr[-3_000:]
        cache_start(database)


def keep_start(database: Path) -> None:
    """Cache this database unless another process has done so."""
    with locked_start():
        if not kept_start().exists():
            cache_start(database)


def cache_start(database: Path) -> None:
    """Cache the database including its write-ahead log, and replace the file atomically."""
    target = kept_start()
    for older in target.parent.glob("test-start-*.sqlite3"):
        older.unlink(missing_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}")
    with closing(sqlite3.connect(database)) as source:
        source.execute("VACUUM INTO ?", [str(unfinished)])
    unfinished.replace(target)


@contextmanager
def locked_start() -> Iterator[None]:
    kept_start().parent.mkdir(exist_ok=True)
    with (ROOT / "var" / "test-start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
