"""How fast prompts are handed out: the fetch, its 304 and a render against a bare view and the naive way."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
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
JUDGED = 16
COLUMNS = ("p50 ms", "p99 ms", "of bare", "× naive")
SECONDS, ROUNDS, WARM = 2.0, 3, 1.0
NAIVE_GOALS = {"postgresql": 7.0, "sqlite": 3.0}
# Two rounds of the same work differ by more than this on a busy machine.
NOISE = 0.05
MEMORY_FETCHES = 100_000
# Kilobytes; what is left over from a busy moment is not a leak.
FLAT = 8 * 1024
# As a careful operator runs it: what was committed is on the disk.
DURABLE = ["listen_addresses=", "max_connections=150"]


@dataclass(frozen=True)
class Work:
    """One kind of request, at the server that answers it."""

    name: str
    port: int
    request: str
    status: str


def main(arguments: list[str]) -> int:
    kinds = arguments or ["postgresql", "sqlite"]
    servers.FAST[:] = DURABLE
    redis = start_redis()
    try:
        return max([one_kind(kind, redis.url) for kind in kinds])
    finally:
        redis.stop()


def one_kind(kind: str, redis_url: str) -> int:
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
            return measured(kind, environment)
        finally:
            if server:
                server.stop()


def measured(kind: str, environment: dict[str, str]) -> int:
    told = json.loads(output("benches.fetch_stage", environment=environment))
    with ExitStack() as running:
        ours = running.enter_context(web("benches.fetch_settings", environment))
        body = first_answer(ours.port, told["secret"])
        Path(environment["BENCH_BODY"]).write_bytes(body)
        bare = running.enter_context(web("benches.bare_settings", environment))
        works = works_of(told, ours.port, bare.port)
        print(f"\n{kind}: a prompt of {told['characters']:,} characters, an answer of {len(body):,} bytes")
        print(f"{'':10}{'connections':>12}{'requests/s':>12}" + "".join(f"{name:>9}" for name in COLUMNS))
        found = {number: rounds(works, number) for number in CONNECTIONS}
        for number, results in found.items():
            table(number, results)
        met = [judged(kind, found[JUDGED]), memory(works[1], ours)]
    return 0 if all(met) else 1


def works_of(told: dict[str, Any], ours: int, bare: int) -> list[Work]:
    secret, address = told["secret"], "/api/v1/agents/pilot/prompt"
    known = f'If-None-Match: W/"{told["digest"]}"\r\n'
    facts = json.dumps(
        {"channel": "web", "host": {"os": "linux"}, "session": {"id": "s-1"}, "append": "Be brief."}
    )
    return [
        Work("bare view", bare, request("GET", "/bare", secret), "200"),
        Work("fetch", ours, request("GET", f"{address}?channel=web", secret), "200"),
        Work("304", ours, request("GET", f"{address}?channel=web", secret, known), "304"),
        Work("render", ours, request("POST", f"{address}:render", secret, body=facts), "200"),
        Work("naive", ours, request("GET", "/naive/agents/pilot/prompt?channel=web", secret), "200"),
    ]


def request(method: str, path: str, secret: str, more: str = "", body: str = "") -> str:
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\n"
        f"Accept: application/json\r\n{more}{kind}\r\n{body}"
    )


# --- servers -------------------------------------------------------------------------------------------


class Web(NamedTuple):
    """A granian of ours."""

    port: int
    process: "subprocess.Popen[bytes]"


@contextmanager
def web(settings: str, environment: dict[str, str], *more: str, log: int | None = None) -> Iterator[Web]:
    """With the product's own command line; further words are added to it."""
    port = free_port()
    process = subprocess.Popen(  # noqa: S603  # ours
        [*build_web_command(HOST, port), *more],
        cwd=ROOT,
        env=environment | {"DJANGO_SETTINGS_MODULE": settings},
        stdout=log,
        stderr=log,
    )
    try:
        wait_for(port)
        yield Web(port, process)
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


def output(module: str, *words: str, environment: dict[str, str], said: str = "") -> str:
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(  # noqa: S603  # ours
        command, cwd=ROOT, env=environment, input=said, text=True, stdout=subprocess.PIPE, check=True
    )
    return done.stdout


def first_answer(port: int, secret: str) -> bytes:
    with closing(http.client.HTTPConnection(HOST, port, timeout=10)) as connection:
        address = "/api/v1/agents/pilot/prompt?channel=web"
        connection.request("GET", address, headers={"Authorization": f"Bearer {secret}"})
        answer = connection.getresponse()
        body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"A fetch is answered {answer.status}: {body[:500]!r}")
    return body


# --- measuring -----------------------------------------------------------------------------------------

Results = dict[str, list[dict[str, Any]]]


def rounds(works: list[Work], connections: int) -> Results:
    """All works in turn, a few times: a busy moment of the machine then meets all of them."""
    found: Results = {work.name: [] for work in works}
    for number in range(ROUNDS + 1):
        for work in works:
            result = load(work, connections, SECONDS if number else WARM)
            if number:
                found[work.name].append(result)
    return found


def load(work: Work, connections: int, seconds: float) -> dict[str, Any]:
    said = {"host": HOST, "port": work.port, "request": work.request}
    said |= {"connections": connections, "seconds": seconds}
    result: dict[str, Any] = json.loads(
        output("benches.load", environment=dict(os.environ), said=json.dumps(said))
    )
    if set(result["statuses"]) != {work.status}:
        raise SystemExit(f"{work.name}: {result['statuses']} instead of {work.status} alone.")
    return result


def speed(results: Results, name: str) -> float:
    return median([per_second(result) for result in results[name]])


def per_second(result: dict[str, Any]) -> float:
    return float(result["requests"] / result["seconds"])


def ratio(results: Results, name: str, other: str) -> float:
    """The median of the rounds' own ratios."""
    pairs = zip(results[name], results[other], strict=True)
    return median([per_second(one) / per_second(two) for one, two in pairs])


def late(results: Results, name: str, percentile: str) -> float:
    return median([float(result[percentile]) for result in results[name]])


def table(connections: int, results: Results) -> None:
    for name in results:
        print(
            f"{name:10}{connections:>12}{speed(results, name):>12,.0f}{late(results, name, 'p50'):>9.2f}"
            f"{late(results, name, 'p99'):>9.2f}{ratio(results, name, 'bare view'):>9.0%}"
            f"{ratio(results, name, 'naive'):>9.1f}"
        )
    shares = [result["share"] for kind in results.values() for result in kind]
    print(f"{'':10}{'':12} (the load generator used at most {max(shares):.0%} of a core)")


def judged(kind: str, results: Results) -> bool:
    late_by = late(results, "fetch", "p99") / late(results, "bare view", "p99")
    goals = [
        said("fetch over naive", ratio(results, "fetch", "naive"), NAIVE_GOALS[kind], "×"),
        said("304 over fetch", ratio(results, "304", "fetch"), 1 - NOISE, "×"),
    ]
    if kind == "postgresql":
        goals.append(said("fetch over bare", ratio(results, "fetch", "bare view"), 0.3, "×"))
        goals.append(said("bare p99 over fetch p99", 1 / late_by, 0.25, "×"))
    return all(goals)


def said(what: str, found: float, least: float, unit: str) -> bool:
    print(f"{what}: {found:.2f}{unit}, at least {least:g} {'met' if found >= least else 'MISSED'}")
    return found >= least


# --- memory --------------------------------------------------------------------------------------------


def memory(work: Work, ours: Web) -> bool:
    """Of all processes of the server, before and after a hundred thousand fetches."""
    load(work, JUDGED, 5 * SECONDS)
    before, count = resident(ours.process.pid), 0
    while count < MEMORY_FETCHES:
        count += load(work, JUDGED, 5 * SECONDS)["requests"]
    after = resident(ours.process.pid)
    met = after - before <= FLAT
    print(
        f"memory: {before / 1024:,.1f} MB, after {count:,} fetches {after / 1024:,.1f} MB "
        f"(at most {FLAT / 1024:g} MB more) {'met' if met else 'MISSED'}"
    )
    return met


def resident(pid: int) -> int:
    """Kilobytes of a process and its children."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    own = int(status.partition("VmRSS:")[2].split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return own + sum(resident(int(child)) for child in children)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
