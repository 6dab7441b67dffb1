"""A read replica of the test database: the same server in read-only mode, or a real standby."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection, connections

from core.db import replica as db_replica
from project.database.config import build_replica_config
from tests.promises.cluster import Cluster
from tests.servers import postgres_programs, unprivileged

SERVER = "postgresql://postgres@/postgres"
CAUGHT_UP_SECONDS = 60.0


def address_of(host: str | None = None) -> str:
    """Return the URL of the test database, on this or on another host."""
    url = f"{SERVER}?host={host}" if host else os.environ["DATABASE_URL"]
    return url.replace("/postgres?", f"/{connection.settings_dict['NAME']}?", 1)


@contextmanager
def use_replica(url: str) -> Iterator[None]:
    """Configure the replica, as if the product had been started with it."""
    known: dict[str, Any] = {
        "default": {},
        db_replica.REPLICA_ALIAS: build_replica_config(url, statement_ms=5_000),
    }
    config = connections.configure_settings(known)[db_replica.REPLICA_ALIAS]
    connections.databases[db_replica.REPLICA_ALIAS] = config
    allow_connection(connections[db_replica.REPLICA_ALIAS])
    db_replica.REPLICA_HEALTH.is_suspended, db_replica.REPLICA_HEALTH.next_check = False, 0.0
    try:
        yield
    finally:
        connections[db_replica.REPLICA_ALIAS].close()
        del connections[db_replica.REPLICA_ALIAS]
        del connections.databases[db_replica.REPLICA_ALIAS]


def allow_connection(wrapper: Any) -> None:
    """Bypass Django's test guard, which blocks databases that were not configured at the start."""

    def ensure_connection() -> None:
        if wrapper.connection is None:
            with wrapper.wrap_database_errors:
                wrapper.connect()

    wrapper.ensure_connection = ensure_connection


@contextmanager
def standby() -> Iterator[Cluster]:
    """Start a standby of the test server with streaming replication."""
    directory = Path(tempfile.mkdtemp(prefix="drm-standby-"))
    account = unprivileged()
    programs = postgres_programs(directory)
    if account:
        shutil.chown(directory, account["user"], account["group"])
    cluster = Cluster(directory, programs)
    command: list[str | Path] = [
        programs / "pg_basebackup",
        "-d",
        os.environ["DATABASE_URL"],
        "-D",
        directory / "data",
    ]
    command += ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--wal-method=stream"]
    try:
        subprocess.run(command, check=True, cwd=directory, stdin=subprocess.DEVNULL, **account)
        # A standby must allow as many connections as its primary.
        with (directory / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write("max_connections = 150\nfsync = off\n")
        cluster.start()
        yield cluster
    finally:
        if cluster.process is not None and cluster.process.poll() is None:
            cluster.stop("immediate")
        shutil.rmtree(directory, ignore_errors=True)


def catch_up(copy: Cluster) -> None:
    """Wait until the standby has replayed everything written so far."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_lsn()::text")
        [position] = cursor.fetchone()
    deadline = time.monotonic() + CAUGHT_UP_SECONDS
    while not query_cluster(copy, f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"):
        assert time.monotonic() < deadline, "The copy does not follow."
        time.sleep(0.02)


def pause_replay(copy: Cluster) -> None:
    """Let the standby stop replaying, and wait until it has stopped."""
    query_cluster(copy, "SELECT pg_wal_replay_pause()")
    deadline = time.monotonic() + CAUGHT_UP_SECONDS
    while query_cluster(copy, "SELECT pg_get_wal_replay_pause_state()") != "paused":
        assert time.monotonic() < deadline, "The copy does not pause."
        time.sleep(0.02)


def query_cluster(copy: Cluster, query: str) -> object:
    with psycopg.connect(copy.url, autocommit=True) as server:
        row = server.execute(query).fetchone()
    return row and row[0]
