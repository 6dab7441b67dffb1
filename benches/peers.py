"""How we stand beside MLflow's prompt registry: one prompt fetched, versioned and labelled, in one run."""

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
from benches.fetch import CONNECTIONS, DURABLE, HOST, JUDGED, Results, output, web
from benches.peers_mlflow import pinned
from benches.peers_table import head, judged, shared, table
from benches.peers_works import Work, mlflow_works, our_works, shared_works
from tests import servers
from tests.servers import start_postgres, start_redis

# A shorter round for a quick look, by the environment.
SECONDS = float(os.environ.get("BENCH_SECONDS", "1.5"))
ROUNDS, WARM = 3, 0.5
WORKERS = 2
# One for each connection to edit, and the last for all to fetch.
NAMES = [f"pilot-{number:05}" for number in range(max(CONNECTIONS) + 1)]
FETCHED = NAMES[-1]
# As many as are still built before the answer to the edit of what they share.
CREW = [f"crew-{number:05}" for number in range(20)]
LONGEST = 600


def main(arguments: list[str]) -> int:
    programs = mlflow.installed()
    # Both end by the way that stops every server.
    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGTERM, give_up)
    signal.alarm(LONGEST)
    servers.FAST[:] = DURABLE
    redis = start_redis()
    try:
        introduce()
        met = [one_kind(kind, redis.url, programs) for kind in arguments or ["postgresql", "sqlite"]]
    finally:
        redis.stop()
    return 0 if all(met) else 1


def give_up(number: int, _: object) -> None:
    told = f"longer than {LONGEST} s" if number == signal.SIGALRM else "ended from outside"
    raise SystemExit(f"Given up: {told}.")


def introduce() -> None:
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}, Python {platform.python_version()}")
    print(f"ours: granian {version('granian')}; MLflow {pinned('mlflow')}: uvicorn {pinned('uvicorn')}")
    print(f"{WORKERS} worker processes each; {ROUNDS} rounds of {SECONDS:g} s")


def one_kind(kind: str, redis_url: str, programs: Path) -> bool:
    with TemporaryDirectory() as var, stores(kind, Path(var)) as (ours, theirs):
        environment = {
            **os.environ,
            "DATABASE_URL": ours,
            "REDIS_URL": redis_url,
            "DRAMATIS_VAR": var,
            "DRAMATIS_ENV": "development",
            "DRAMATIS_WEB_PROCESSES": str(WORKERS),
            "LOG_LEVEL": "ERROR",
            "BENCH_BODY": f"{var}/body",
        }
        return measured(kind, environment, theirs, programs)


@contextmanager
def stores(kind: str, var: Path) -> Iterator[tuple[str, str]]:
    """Two databases of a kind, on one server if it is one."""
    if kind == "sqlite":
        yield f"sqlite:///{var}/ours.sqlite3", f"sqlite:///{var}/mlflow.sqlite3"
        return
    server = start_postgres()
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE mlflow")
        print(f"PostgreSQL {server.version}")
        # By the driver that its documentation names.
        theirs = server.url.replace("postgresql:", "postgresql+psycopg2:")
        yield server.url, theirs.replace("/postgres?", "/mlflow?")
    finally:
        server.stop()


def measured(kind: str, environment: dict[str, str], store: str, programs: Path) -> bool:
    told = json.loads(output("benches.peers_stage", str(len(NAMES)), str(len(CREW)), environment=environment))
    folder = Path(environment["DRAMATIS_VAR"])
    more = ("--workers", str(WORKERS))
    with ExitStack() as running:
        # What is refused is counted, and needs no traces.
        ours = running.enter_context(
            web("benches.fetch_settings", environment, *more, log=subprocess.DEVNULL)
        ).port
        body = answer_of(ours, "GET", f"/api/v1/agents/{FETCHED}/prompt?channel=web", told["bot"])
        text: str = json.loads(body)["text"]
        Path(environment["BENCH_BODY"]).write_bytes(body)
        bare = running.enter_context(web("benches.bare_settings", environment, *more)).port
        theirs = running.enter_context(mlflow.server(programs, store, folder, WORKERS))
        known = {"url": f"http://{HOST}:{theirs}", "names": NAMES + CREW, "text": text}
        mlflow.told(programs, folder, "make", **known)
        works = our_works(told, FETCHED, ours, bare) + mlflow_works(text, FETCHED, theirs)
        print(f"{len(text):,} characters of prompt; our answer has {len(body):,} bytes")
        head(kind)
        found = {}
        for number in CONNECTIONS:
            found[number] = rounds(works, number)
            table(number, found[number])
        shared(rounds(shared_works(told, text, CREW, ours, theirs), 1), len(CREW))
        prove(told, ours)
        mlflow.told(programs, folder, "check", **known)
    return judged(kind, found[JUDGED])


# --- one answer at a time ------------------------------------------------------------------------------


def answer_of(port: int, method: str, path: str, secret: str, body: dict[str, Any] | None = None) -> bytes:
    headers = {"Authorization": f"Bearer {secret}", "If-Match": "*", "Content-Type": "application/json"}
    if body is None:
        headers = {"Authorization": f"Bearer {secret}"}
    with closing(http.client.HTTPConnection(HOST, port, timeout=30)) as connection:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        read = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{method} {path} is answered {answer.status}: {read[:500]!r}")
    return read


def prove(told: dict[str, str], port: int) -> None:
    """Once an edit is answered its version can be fetched; so the answer is what is timed."""
    words = "This was said last of all."
    name = NAMES[0].removeprefix("pilot-")
    answer_of(port, "PATCH", f"/api/v1/souls/soul-{name}", told["admin"], {"text": words})
    fetched = json.loads(answer_of(port, "GET", f"/api/v1/agents/{NAMES[0]}/prompt?channel=web", told["bot"]))
    if words not in fetched["text"]:
        raise SystemExit("An edit was answered before its version could be fetched.")


# --- measuring -----------------------------------------------------------------------------------------


def rounds(works: list[Work], connections: int) -> Results:
    """All works in turn, a few times: a busy moment of the machine then meets all of them."""
    found: Results = {work.name: [] for work in works}
    for number in range(ROUNDS + 1):
        for work in works:
            result = load(work, connections, SECONDS if number else min(WARM, SECONDS))
            if number:
                found[work.name].append(result)
    return found


def load(work: Work, connections: int, seconds: float) -> dict[str, Any]:
    asked = {"host": HOST, "port": work.port, "turns": work.turns}
    asked |= {"connections": connections, "seconds": seconds}
    result: dict[str, Any] = json.loads(
        output("benches.load", environment=dict(os.environ), said=json.dumps(asked))
    )
    # Told in the table, and worth nothing.
    result["refused"] = sum(count for status, count in result["statuses"].items() if status != "200")
    result["requests"] -= result["refused"]
    if not result["requests"]:
        raise SystemExit(f"{work.name} with {connections} connections: {result['statuses']}.")
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
