"""Benchmark of tracing: fetches without and with spans, side by side, and what a span costs."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benches.fetch import (
    CONNECTIONS,
    DURABLE,
    HOST,
    NOISE,
    ROOT,
    Workload,
    build_request,
    fetch_body,
    get_latency,
    get_rate,
    get_rate_ratio,
    report_goal,
    run_module,
    run_on_database,
    run_rounds,
    run_web,
)
from tests import servers
from tests.servers import start_redis

LOCK = ROOT / "requirements" / "tracing.txt"
OFF, AGAIN, ON, SAMPLED = "off", "off again", "on", "on, 1%"
# 1 of 100 traces, for fetches without a traceparent.
SAMPLER = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}


def install() -> Path:
    """Install the optional packages once per lock file; return their folder, for PYTHONPATH."""
    digest = sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = ROOT / "var" / "tracing" / digest
    stamp = folder / ".installed"
    if not stamp.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "--upgrade"]
        subprocess.run([*command, "--target", folder, "-r", LOCK], check=True)  # noqa: S603  # as pinned
        stamp.touch()
    return folder


@contextmanager
def run_collector() -> Iterator[str]:
    """Run a collector that accepts spans and keeps none, in this process; return its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{HOST}:{server.server_port}/v1/traces"
    finally:
        server.shutdown()
        server.server_close()


def main(arguments: list[str]) -> int:
    kinds = arguments or ["postgresql"]
    servers.FAST[:] = DURABLE
    redis, packages = start_redis(), install()
    try:
        return max([run_on_database(kind, redis.url, partial(compare, packages)) for kind in kinds])
    finally:
        redis.stop()


def compare(packages: Path, kind: str, environment: dict[str, str]) -> int:
    """Run the same fetches against four servers in turn: tracing off, off, on, and on with a sampler."""
    stage = json.loads(run_module("benches.fetch_stage", environment=environment))
    with ExitStack() as running:
        collector = running.enter_context(run_collector())
        traced = environment | {
            "PYTHONPATH": str(packages),
            "DRAMATIS_TRACING": "true",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector,
        }
        request = build_request("GET", "/api/v1/agents/pilot/channels/web/prompt", stage["secret"])
        workloads = []
        for name, variables in {
            OFF: environment,
            AGAIN: environment,
            ON: traced,
            SAMPLED: traced | SAMPLER,
        }.items():
            server = running.enter_context(run_web("benches.fetch_settings", variables))
            fetch_body(server.port, "pilot", stage["secret"])
            workloads.append(Workload(name, server.port, [request], "200"))
        print(f"\n{kind}: fetches of a prompt of {stage['characters']:,} characters")
        print(f"{'tracing':12}{'connections':>12}{'requests/s':>12}{'p50 ms':>9}{'p99 ms':>9}{'of off':>9}")
        ratios = []
        for connections in CONNECTIONS:
            results = run_rounds(workloads, connections)
            for name in results:
                p50, p99 = (get_latency(results, name, percentile) for percentile in ("p50", "p99"))
                ratio = get_rate_ratio(results, name, OFF)
                figures = f"{get_rate(results, name):>12,.0f}{p50:>9.2f}{p99:>9.2f}{ratio:>9.0%}"
                print(f"{name:12}{connections:>12}{figures}")
            ratios.append(get_rate_ratio(results, AGAIN, OFF))
    # The two servers without tracing are the same program: their difference is the noise of this run.
    worst = min(min(ratio, 1 / ratio) for ratio in ratios)
    report_goal("two servers without tracing", worst, 1 - 2 * NOISE, "×")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
