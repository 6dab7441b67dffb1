"""Benchmark of serving: fetch, 304 and render against two baselines and a naive implementation."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from project.supervisor.children import build_web_command
from tests import servers
from tests.servers import start_postgres, start_redis

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
CONNECTIONS = (1, 16, 64)
GOAL_CONNECTIONS = 16
COLUMNS = ("p50 ms", "p99 ms", "of WSGI", "of bare", "× naive")
PRODUCT, PLAIN = "project.wsgi:application", "benches.plain_wsgi:application"
ROUND_SECONDS, ROUNDS, WARM_UP_SECONDS = 2.0, 3, 1.0
NAIVE_GOALS = {"postgresql": 7.0, "sqlite": 3.0}
# Two rounds of the same workload may differ by this much on a busy machine.
NOISE = 0.05
MEMORY_FETCHES = 100_000
# The median of a fetch with the most erasures, divided by that with the fewest.
MAX_ERASURES_RATIO = 1.2
# Kilobytes; a smaller increase is no leak.
MAX_MEMORY_GROWTH = 8 * 1024
# PostgreSQL options with fsync on, as in production.
DURABLE = ["listen_addresses=", "max_connections=150"]


@dataclass(frozen=True)
class Workload:
    """Requests that a connection sends in turn, the server's port and the expected status."""

    name: str
    port: int
    requests: list[str]
    status: str


def main(arguments: list[str]) -> int:
    kinds = arguments or ["postgresql", "sqlite"]
    servers.FAST[:] = DURABLE
    redis = start_redis()
    try:
        return max([run_on_database(kind, redis.url) for kind in kinds])
    finally:
        redis.stop()


def run_on_database(
    kind: str, redis_url: str, run: "Callable[[str, dict[str, str]], int] | None" = None
) -> int:
    """Start a database and run a benchmark on it, by default that of this module."""
    with TemporaryDirectory() as var:
        server = start_postgres() if kind == "postgresql" else None
        environment = {
            **os.environ,
            "DATABASE_URL": server.url if server else f"sqlite:///{var}/bench.sqlite3",
            "REDIS_URL": redis_url,
            "DRAMATIS_VAR": var,
            "DRAMATIS_ENV": "development",
            "LOG_LEVEL": "ERROR",
            "BENCH_BODY": f"{var}/body",
        }
        try:
            return (run or run_benchmark)(kind, environment)
        finally:
            if server:
                server.stop()


def run_benchmark(kind: str, environment: dict[str, str]) -> int:
    stage = json.loads(run_module("benches.fetch_stage", environment=environment))
    with ExitStack() as running:
        product = running.enter_context(run_web("benches.fetch_settings", environment))
        body = fetch_body(product.port, "pilot", stage["secret"])
        # The first fetch of a prompt loads its text. The rounds measure the fetches after that.
        for agent, secret in stage["many"].items():
            fetch_body(product.port, agent, secret)
        Path(environment["BENCH_BODY"]).write_bytes(body)
        bare = running.enter_context(run_web("benches.bare_settings", environment))
        plain = running.enter_context(run_web("benches.bare_settings", environment, application=PLAIN))
        workloads = [
            Workload("plain WSGI", plain.port, [build_request("GET", "/", stage["secret"])], "200"),
            Workload("bare view", bare.port, [build_request("GET", "/bare", stage["secret"])], "200"),
            *build_workloads(stage, product.port),
        ]
        print(f"\n{kind}: a prompt of {stage['characters']:,} characters, an answer of {len(body):,} bytes")
        print(f"{'':12}{'connections':>12}{'requests/s':>12}" + "".join(f"{name:>9}" for name in COLUMNS))
        results_by_connections = {number: run_rounds(workloads, number) for number in CONNECTIONS}
        for number, results in results_by_connections.items():
            print_table(number, results)
        goals_met = [
            check_goals(kind, results_by_connections[GOAL_CONNECTIONS]),
            check_erasures(stage["erasures"], product.port),
            check_memory(next(one for one in workloads if one.name == "fetch"), product),
        ]
    return 0 if all(goals_met) else 1


def build_workloads(stage: dict[str, Any], port: int) -> list[Workload]:
    secret, path = stage["secret"], "/api/v1/agents/pilot/channels/web/prompt"
    if_none_match = f'If-None-Match: W/"{stage["digest"]}"\r\n'
    facts = json.dumps({"host": {"os": "linux"}, "session": {"id": "s-1"}, "append": "Be brief."})
    many = [
        build_request("GET", f"/api/v1/agents/{agent}/channels/web/prompt", other)
        for agent, other in stage["many"].items()
    ]
    fetch = build_request("GET", path, secret)
    conditional = build_request("GET", path, secret, if_none_match)
    naive = build_request("GET", "/naive/agents/pilot/channels/web/prompt", secret)
    return [
        Workload("fetch", port, [fetch], "200"),
        Workload(f"{len(many)} prompts", port, many, "200"),
        Workload("304", port, [conditional], "304"),
        Workload("render", port, [build_request("POST", f"{path}:render", secret, body=facts)], "200"),
        Workload("naive", port, [naive], "200"),
    ]


def build_request(method: str, path: str, secret: str, extra_headers: str = "", body: str = "") -> str:
    body_headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\n"
        f"Accept: application/json\r\n{extra_headers}{body_headers}\r\n{body}"
    )


# --- servers -------------------------------------------------------------------------------------------


class WebServer(NamedTuple):
    """A running granian server."""

    port: int
    process: "subprocess.Popen[bytes]"


@contextmanager
def run_web(
    settings: str,
    environment: dict[str, str],
    *arguments: str,
    log: int | None = None,
    application: str = PRODUCT,
) -> Iterator[WebServer]:
    """Run granian with the product's command line and additional arguments."""
    port = free_port()
    command = [application if part == PRODUCT else part for part in build_web_command(HOST, port)]
    process = subprocess.Popen(  # noqa: S603  # ours
        [*command, *arguments],
        cwd=ROOT,
        env=environment | {"DJANGO_SETTINGS_MODULE": settings},
        stdout=log,
        stderr=log,
    )
    try:
        wait_for(port)
        yield WebServer(port, process)
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    for _ in range(300):
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit("The web server did not start.")


def run_module(module: str, *arguments: str, environment: dict[str, str], stdin: str = "") -> str:
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.run(  # noqa: S603  # ours
        command, cwd=ROOT, env=environment, input=stdin, text=True, stdout=subprocess.PIPE, check=True
    )
    return process.stdout


def fetch_body(port: int, agent: str, secret: str) -> bytes:
    with closing(http.client.HTTPConnection(HOST, port, timeout=10)) as connection:
        path = f"/api/v1/agents/{agent}/channels/web/prompt"
        connection.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
        response = connection.getresponse()
        body = response.read()
    if response.status != 200:
        raise SystemExit(f"A fetch is answered {response.status}: {body[:500]!r}")
    return body


# --- measuring -----------------------------------------------------------------------------------------

Results = dict[str, list[dict[str, Any]]]


def run_rounds(workloads: list[Workload], connections: int) -> Results:
    """Run all workloads in turn for several rounds, so that load on the machine affects all of them."""
    results_by_connections: Results = {workload.name: [] for workload in workloads}
    for number in range(ROUNDS + 1):
        for workload in workloads:
            result = run_load(workload, connections, ROUND_SECONDS if number else WARM_UP_SECONDS)
            if number:
                results_by_connections[workload.name].append(result)
    return results_by_connections


def run_load(workload: Workload, connections: int, seconds: float) -> dict[str, Any]:
    options: dict[str, Any] = {"host": HOST, "port": workload.port}
    options |= {"turns": [[request] for request in workload.requests]}
    options |= {"connections": connections, "seconds": seconds}
    result: dict[str, Any] = json.loads(
        run_module("benches.load", environment=dict(os.environ), stdin=json.dumps(options))
    )
    if set(result["statuses"]) != {workload.status}:
        raise SystemExit(f"{workload.name}: {result['statuses']} instead of {workload.status} alone.")
    return result


def get_rate(results: Results, name: str) -> float:
    return median([per_second(result) for result in results[name]])


def per_second(result: dict[str, Any]) -> float:
    return float(result["requests"] / result["seconds"])


def get_rate_ratio(results: Results, name: str, other: str) -> float:
    """Return the median of the ratios of each round."""
    pairs = zip(results[name], results[other], strict=True)
    return median([per_second(one) / per_second(two) for one, two in pairs])


def get_latency(results: Results, name: str, percentile: str) -> float:
    return median([float(result[percentile]) for result in results[name]])


def print_table(connections: int, results: Results) -> None:
    for name in results:
        p50, p99 = (get_latency(results, name, percentile) for percentile in ("p50", "p99"))
        of_plain, of_bare, of_naive = (
            get_rate_ratio(results, name, other) for other in ("plain WSGI", "bare view", "naive")
        )
        print(
            f"{name:12}{connections:>12}{get_rate(results, name):>12,.0f}{p50:>9.2f}{p99:>9.2f}"
            f"{of_plain:>9.0%}{of_bare:>9.0%}{of_naive:>9.1f}"
        )
    shares = [result["share"] for kind in results.values() for result in kind]
    print(f"{'':12}{'':12} (the load generator used at most {max(shares):.0%} of a core)")


def check_goals(kind: str, results: Results) -> bool:
    p99_ratio = get_latency(results, "fetch", "p99") / get_latency(results, "bare view", "p99")
    goals = [
        report_goal("fetch over naive", get_rate_ratio(results, "fetch", "naive"), NAIVE_GOALS[kind], "×"),
        report_goal("304 over fetch", get_rate_ratio(results, "304", "fetch"), 1 - NOISE, "×"),
    ]
    if kind == "postgresql":
        goals.append(report_goal("fetch over bare", get_rate_ratio(results, "fetch", "bare view"), 0.3, "×"))
        goals.append(report_goal("bare p99 over fetch p99", 1 / p99_ratio, 0.25, "×"))
    return all(goals)


def report_goal(name: str, value: float, minimum: float, unit: str) -> bool:
    print(f"{name}: {value:.2f}{unit}, at least {minimum:g} {'met' if value >= minimum else 'MISSED'}")
    return value >= minimum


# --- erasures ------------------------------------------------------------------------------------------


def check_erasures(secrets: dict[str, str], port: int) -> bool:
    """Check that a fetch does not take longer in a workspace with many erasures."""
    path = "/api/v1/agents/pilot/channels/web/prompt"
    workloads = [
        Workload(number, port, [build_request("GET", path, secret)], "200")
        for number, secret in secrets.items()
    ]
    results = run_rounds(workloads, 1)
    for name in results:
        print(f"fetch after {int(name):,} erasures: p50 {get_latency(results, name, 'p50'):.2f} ms")
    names = list(secrets)
    pairs = zip(results[names[-1]], results[names[0]], strict=True)
    ratio = median([float(many["p50"]) / float(few["p50"]) for many, few in pairs])
    is_met = ratio <= MAX_ERASURES_RATIO
    print(
        f"erasures {int(names[-1]):,} / {int(names[0]):,}: {ratio:.2f}×, at most {MAX_ERASURES_RATIO:g} "
        f"{'met' if is_met else 'MISSED'}"
    )
    return is_met


# --- memory --------------------------------------------------------------------------------------------


def check_memory(workload: Workload, product: WebServer) -> bool:
    """Check the memory of all server processes before and after a hundred thousand fetches."""
    run_load(workload, GOAL_CONNECTIONS, 5 * ROUND_SECONDS)
    before, count = get_resident_memory(product.process.pid), 0
    while count < MEMORY_FETCHES:
        count += run_load(workload, GOAL_CONNECTIONS, 5 * ROUND_SECONDS)["requests"]
    after = get_resident_memory(product.process.pid)
    goals_met = after - before <= MAX_MEMORY_GROWTH
    print(
        f"memory: {before / 1024:,.1f} MB, after {count:,} fetches {after / 1024:,.1f} MB "
        f"(at most {MAX_MEMORY_GROWTH / 1024:g} MB more) {'met' if goals_met else 'MISSED'}"
    )
    return goals_met


def get_resident_memory(pid: int) -> int:
    """Return the resident kilobytes of a process and its children."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    own = int(status.partition("VmRSS:")[2].split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return own + sum(get_resident_memory(int(child)) for child in children)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
