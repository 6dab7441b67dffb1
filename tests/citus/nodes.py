"""Start a Citus cluster on loopback: one coordinator and some workers, which a test can stop and start."""

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.citus.installation import find_programs
from tests.promises.cluster import Cluster
from tests.servers import unprivileged

HOST = "127.0.0.1"
SHARD_COUNT = 8
SETTINGS = (
    "listen_addresses=127.0.0.1",
    "shared_preload_libraries=citus",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=200",
    # Writes to several nodes commit in two phases.
    "max_prepared_transactions=200",
    "max_wal_size=4GB",
    "checkpoint_timeout=1h",
    "shared_buffers=128MB",
    # Nodes of one cluster connect to each other without TLS here.
    "citus.node_conninfo=sslmode=disable",
    # Of use on machines with many cores.
    "jit=off",
    "max_parallel_workers_per_gather=0",
    "wal_level=logical",
    # Instead of 32: every table has fewer shards, and is distributed faster.
    f"citus.shard_count={SHARD_COUNT}",
)
INITDB = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")


@dataclass
class Node(Cluster):
    """A PostgreSQL server with Citus on a TCP port of its own."""

    port: int = 0

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def execute(self, database: str, *statements: str) -> list[tuple[object, ...]]:
        """Run the statements, each in its own transaction, and return the rows of the last one."""
        with psycopg.connect(self.url_of(database), autocommit=True) as server:
            for statement in statements:
                cursor = server.execute(statement)
            return cursor.fetchall() if cursor.description else []


@dataclass
class CitusCluster:
    """The nodes; the coordinator is the one that the product connects to."""

    coordinator: Node
    workers: list[Node]

    @property
    def nodes(self) -> list[Node]:
        return [self.coordinator, *self.workers]

    def create_database(self, name: str) -> str:
        """Create a database with the extension on every node, add the workers, and return its URL."""
        for node in self.nodes:
            node.execute(
                "postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}"
            )
        self.connect_nodes(name)
        return self.coordinator.url_of(name)

    def connect_nodes(self, name: str) -> None:
        """Create the extension in an existing database of the coordinator, and add the workers."""
        for node in self.workers:
            if not node.execute("postgres", f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):  # noqa: S608  # a name of ours
                node.execute("postgres", f"CREATE DATABASE {name}")
        for node in self.nodes:
            node.execute(name, "CREATE EXTENSION IF NOT EXISTS citus")
        self.coordinator.execute(
            name,
            f"SELECT citus_set_coordinator_host('{HOST}', {self.coordinator.port})",
            *(f"SELECT citus_add_node('{HOST}', {worker.port})" for worker in self.workers),
        )

    def stop(self) -> None:
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                node.stop("immediate")
            shutil.rmtree(node.directory, ignore_errors=True)


def start_cluster(workers: int = 2) -> CitusCluster:
    programs = find_programs()
    if programs is None:
        raise RuntimeError("There is no build of Citus: run tests/citus/build.")
    nodes: list[Node] = []
    try:
        nodes.extend(start_node(programs, port) for port in find_free_ports(workers + 1))
    except BaseException:
        for node in nodes:
            node.stop("immediate")
        raise
    return CitusCluster(nodes[0], nodes[1:])


@contextmanager
def citus_cluster(workers: int = 2) -> Iterator[CitusCluster]:
    cluster = start_cluster(workers)
    try:
        yield cluster
    finally:
        cluster.stop()


def start_node(programs: Path, port: int) -> Node:
    directory = Path(tempfile.mkdtemp(prefix="drm-citus-"))
    account = unprivileged()
    if account:
        shutil.chown(directory, account["user"], account["group"])
    subprocess.run(
        [programs / "initdb", "-D", directory / "data", *INITDB],
        check=True,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        **account,
    )
    settings = (*SETTINGS, f"port={port}", f"citus.local_hostname={HOST}")
    node = Node(
        directory, programs, tuple(word for setting in settings for word in ("-c", setting)), port=port
    )
    node.start()
    return node


def find_free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def main() -> None:
    """Start a cluster with a database and keep it until the input ends, for trials by hand."""
    with citus_cluster() as cluster:
        print(cluster.create_database("dramatis"), *(node.port for node in cluster.workers), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
