"""Benchmark against MLflow's prompt registry: fetch a prompt, create a version and move a label."""

import http.client
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from benches import peers_mlflow as mlflow
from benches.fetch import CONNECTIONS, DURABLE, GOAL_CONNECTIONS, HOST, Results, run_module, run_web
from benches.peers_mlflow import get_pinned_version
from benches.peers_table import check_goals, print_heading, print_shared_edit, print_table
from benches.peers_workloads import (
    Workload,
    build_mlflow_workloads,
    build_product_workloads,
    build_shared_edit_workloads,
)
from tests import servers
from tests.servers import start_postgres, start_redis

# BENCH_SECONDS shortens the rounds for a quick run.
# Long enough for database connections to prepare their statements, which PostgreSQL does on each of them.
ROUND_SECONDS = float(os.environ.get("BENCH_SECONDS", "3"))
ROUNDS, WARM_UP_SECONDS = 3, 2.0
WORKERS = 2
# One prompt per connection to edit, and the last one for all connections to fetch.
AGENTS = [f"pilot-{number:05}" for number in range(max(CONNECTIONS) + 1)]
FETCHED_AGENT = AGENTS[-1]
# As many prompts as are built before the response to an edit of their shared soul.
SHARED_SOUL_AGENTS = [f"crew-{number:05}" for number in range(20)]
MAX_SECONDS = 1_200


def main(database_kinds: list[str]) -> int:
    mlflow_bin = mlflow.install()
    # Raise SystemExit, so that every server is stopped.
    signal.signal(signal.SIGALRM, raise_exit)
    signal.signal(signal.SIGTERM, raise_exit)
    signal.alarm(MAX_SECONDS)
    servers.FAST[:] = DURABLE
    redis = start_redis()
    try:
        print_environment()
        goals_met = [
            run_on_database(kind, redis.url, mlflow_bin)
            for kind in database_kinds or ["postgresql", "sqlite"]
        ]
    finally:
        redis.stop()
    return 0 if all(goals_met) else 1


def raise_exit(number: int, _: object) -> None:
    reason = f"longer than {MAX_SECONDS} s" if number == signal.SIGALRM else "ended from outside"
    raise SystemExit(f"Given up: {reason}.")


def print_environment() -> None:
    load_average = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load_average}, Python {platform.python_version()}")
    print(
        f"ours: granian {version('granian')}; MLflow {get_pinned_version('mlflow')}: "
        f"uvicorn {get_pinned_version('uvicorn')}"
    )
    print(f"{WORKERS} worker processes each; {ROUNDS} rounds of {ROUND_SECONDS:g} s")


def run_on_database(kind: str, redis_url: str, mlflow_bin: Path) -> bool:
    with TemporaryDirectory() as var, create_databases(kind, Path(var)) as (product, peer):
        environment = {
            **os.environ,
            "DATABASE_URL": product,
            "REDIS_URL": redis_url,
            "DRAMATIS_VAR": var,
            "DRAMATIS_ENV": "development",
            "DRAMATIS_WEB_PROCESSES": str(WORKERS),
            "LOG_LEVEL": "ERROR",
            "BENCH_BODY": f"{var}/body",
        }
        return run_benchmark(kind, environment, peer, mlflow_bin)


@contextmanager
def create_databases(kind: str, var: Path) -> Iterator[tuple[str, str]]:
    """Yield the URLs of two databases: two files, or two databases on one PostgreSQL server."""
    if kind == "sqlite":
        yield f"sqlite:///{var}/ours.sqlite3", f"sqlite:///{var}/mlflow.sqlite3"
        return
    server = start_postgres()
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE mlflow")
        print(f"PostgreSQL {server.version}")
        # The driver of MLflow's documentation.
        peer = server.url.replace("postgresql:", "postgresql+psycopg2:")
        yield server.url, peer.replace("/postgres?", "/mlflow?")
    finally:
        server.stop()


def run_benchmark(kind: str, environment: dict[str, str], mlflow_database: str, mlflow_bin: Path) -> bool:
    stage = json.loads(
        run_module(
            "benches.peers_stage", str(len(AGENTS)), str(len(SHARED_SOUL_AGENTS)), environment=environment
        )
    )
    folder = Path(environment["DRAMATIS_VAR"])
    arguments = ("--workers", str(WORKERS))
    with ExitStack() as running:
        # Refused requests are counted, so their log output is not needed.
        product = running.enter_context(
            run_web("benches.fetch_settings", environment, *arguments, log=subprocess.DEVNULL)
        ).port
        body = send_request(
            product, "GET", f"/api/v1/agents/{FETCHED_AGENT}/channels/web/prompt", stage["bot"]
        )
        text: str = json.loads(body)["text"]
        Path(environment["BENCH_BODY"]).write_bytes(body)
        baseline = running.enter_context(run_web("benches.bare_settings", environment, *arguments)).port
        peer = running.enter_context(mlflow.run_server(mlflow_bin, mlflow_database, folder, WORKERS))
        client_input = {"url": f"http://{HOST}:{peer}", "names": AGENTS + SHARED_SOUL_AGENTS, "text": text}
        mlflow.run_client(mlflow_bin, folder, "make", **client_input)
        workloads = build_product_workloads(stage, FETCHED_AGENT, product, baseline) + build_mlflow_workloads(
            text, FETCHED_AGENT, peer
        )
        print(f"{len(text):,} characters of prompt; our answer has {len(body):,} bytes")
        print_heading(kind)
        results = {}
        for number in CONNECTIONS:
            results[number] = run_rounds(workloads, number)
            print_table(number, results[number])
        print_shared_edit(
            run_rounds(build_shared_edit_workloads(stage, text, SHARED_SOUL_AGENTS, product, peer), 1),
            len(SHARED_SOUL_AGENTS),
        )
        check_edit_is_served(stage, product)
        mlflow.run_client(mlflow_bin, folder, "check", **client_input)
    return check_goals(kind, results[GOAL_CONNECTIONS])


# --- single requests -----------------------------------------------------------------------------------


def send_request(port: int, method: str, path: str, secret: str, body: dict[str, Any] | None = None) -> bytes:
    headers = {"Authorization": f"Bearer {secret}", "If-Match": "*", "Content-Type": "application/json"}
    if body is None:
        headers = {"Authorization": f"Bearer {secret}"}
    with closing(http.client.HTTPConnection(HOST, port, timeout=30)) as connection:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        content = response.read()
    if response.status != 200:
        raise SystemExit(f"{method} {path} is answered {response.status}: {content[:500]!r}")
    return content


def check_edit_is_served(stage: dict[str, str], port: int) -> None:
    """Check that an edit's version can be fetched once the edit is answered, as the timing assumes."""
    sentence = "This was said last of all."
    name = AGENTS[0].removeprefix("pilot-")
    send_request(port, "PATCH", f"/api/v1/souls/soul-{name}", stage["admin"], {"text": sentence})
    fetched = json.loads(
        send_request(port, "GET", f"/api/v1/agents/{AGENTS[0]}/channels/web/prompt", stage["bot"])
    )
    if sentence not in fetched["text"]:
        raise SystemExit("An edit was answered before its version could be fetched.")


# --- measuring -----------------------------------------------------------------------------------------


def run_rounds(workloads: list[Workload], connections: int) -> Results:
    """Run all workloads in turn for several rounds, so that load on the machine affects all of them."""
    results: Results = {workload.name: [] for workload in workloads}
    for number in range(ROUNDS + 1):
        for workload in workloads:
            result = run_load(
                workload, connections, ROUND_SECONDS if number else min(WARM_UP_SECONDS, ROUND_SECONDS)
            )
            if number:
                results[workload.name].append(result)
    return results


def run_load(workload: Workload, connections: int, seconds: float) -> dict[str, Any]:
    options = {"host": HOST, "port": workload.port, "turns": workload.turns}
    options |= {"connections": connections, "seconds": seconds}
    result: dict[str, Any] = json.loads(
        run_module("benches.load", environment=dict(os.environ), stdin=json.dumps(options))
    )
    # Refused operations are reported in the table and do not count for the rate.
    result["refused"] = sum(count for status, count in result["statuses"].items() if status != "200")
    result["requests"] -= result["refused"]
    if not result["requests"]:
        raise SystemExit(f"{workload.name} with {connections} connections: {result['statuses']}.")
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
