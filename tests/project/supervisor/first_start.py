"""Cached SQLite file of a first start, because creating it is slow; valid until a migration changes."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.database_dump import fingerprint
from tests.project.deployment.production_settings import ROOT


def kept_start() -> Path:
    return ROOT / "var" / f"test-start-{fingerprint()}.sqlite3"


def copy_start(place: Path) -> None:
    """Copy the cached file, which has all tables and no rows; do nothing if there is none."""
    if kept_start().exists():
        shutil.copy(kept_start(), place)


def keep_start(database: Path) -> None:
    """Cache the database including its write-ahead log, and replace the file atomically."""
    target = kept_start()
    target.parent.mkdir(exist_ok=True)
    for older in target.parent.glob("test-start-*.sqlite3"):
        older.unlink(missing_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}")
    with closing(sqlite3.connect(database)) as source:
        source.execute("VACUUM INTO ?", [str(unfinished)])
    unfinished.replace(target)
