"""One person floods an installation with requests and jobs; the share of another is measured beside it.

Run as `python -m tests.promises.flood PORT`; facts come as a line of JSON, the flood ends with the input.
"""

import base64
import http.client
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any, Self
from urllib.parse import urlencode

import psycopg

from project.supervisor.supervisor import set_parent_death_signal
from tests.clients.live import HOST
from tests.personas.api.revocation_load import RequestSpec
from tests.project.backup.backup_stage import ROOT
from tests.project.deployment.compose import command_of
from tests.promises import FAULT
from tests.promises.installation import Installation
from tests.promises.load import LoadRequest, LoadResponse, send_request
from tests.workers import Worker, start_celery, wait_until_ready

JSON = {"Content-Type": "application/json"}
# Random text, because PostgreSQL compresses other text. Under the limit of 64 KiB for one call.
CALL_DATA_BYTES, LARGE_BODY_BYTES = 45_000, 1_000_000
RENDER_THREADS, EXPORT_THREADS = 4, 1
# Under the limit of 256 KiB for one file.
PUSH_BYTES = 240_000
# Pause between two edits of a soul that a thousand agents share.
EDIT_PAUSE, VERIFY_PAUSE = 2.0, 1.0
CSRF_TOKEN = "f" * 32
TIMEOUT = 40.0
HEARTBEAT_TIMEOUT = 300
COUNTS_SQL = {
    "builds": "SELECT count(*) FROM prompts_buildcause WHERE workspace_id = %s",
    "scans": "SELECT count(*) FROM skills_refreshrun WHERE workspace_id = %s "
    "AND status IN ('queued', 'running')",
}
# The cache stores when the entry expires: HEARTBEAT_TIMEOUT seconds after it was written.
HEARTBEAT_SQL = (
    "SELECT extract(epoch FROM now() - expires) + %s FROM project_cache "
    "WHERE cache_key LIKE '%%worker-heartbeat'"
)
STORED_SQL = "SELECT coalesce(sum(size), 0) FROM prompts_callcontent WHERE workspace_id = %s"
# The bytes that the person's calls stored, and those of the person's pushed files.
CALLS_SQL = (
    "SELECT coalesce(sum(c.size), 0)::bigint FROM prompts_callcontent c JOIN personas_workspace w "
    "ON w.id = c.workspace_id WHERE w.counted_for_id = %s"
)
PUSHED_SQL = (
    "SELECT coalesce(sum(c.size), 0)::bigint FROM personas_content c JOIN personas_workspace w "
    "ON w.id = c.workspace_id WHERE w.counted_for_id = %s AND w.slug LIKE 'o%%' AND c.size > 100000"
)
# The bytes of the rows. The files are larger by a varying amount, because PostgreSQL adds up to 64 pages at a
# time for each connection that writes.
GROWTH_SQL = (
    "SELECT coalesce(sum(pg_column_size(data) + pg_column_size(digest) + pg_column_size(plain_digest)"
    " + pg_column_size(salt) + 24), 0)::bigint FROM prompts_callcontent"
)


class Requests:
    """The requests of one tenant."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.editor = {"Authorization": f"Bearer {facts['editor']}", **JSON}

    def bot(self, index: int) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.facts['bots'][index % len(self.facts['bots'])]}"}

    def agent(self, index: int) -> str:
        agent: str = self.facts["agents"][index % len(self.facts["agents"])]
        return agent

    def fetch(self, index: int) -> LoadRequest:
        path = f"/api/v1/agents/{self.agent(index)}/channels/{self.facts['channel']}/prompt"
        return LoadRequest("fetch", RequestSpec(path, headers=self.bot(index)))

    def read_text(self) -> LoadRequest:
        """A fetch whose response is kept."""
        return LoadRequest("text", self.fetch(0).spec)

    def render(self, index: int, size: int) -> LoadRequest:
        """A call with as much random data as the size says."""
        text = base64.b64encode(os.urandom(size * 3 // 4)).decode()
        body = {"append": [text[start : start + 19_000] for start in range(0, len(text), 19_000)]}
        spec = RequestSpec(
            f"/api/v1/agents/{self.agent(index)}/channels/{self.facts['channel']}/prompt:render",
            "POST",
            self.bot(index) | JSON,
            json.dumps(body).encode(),
        )
        return LoadRequest("render", spec)

    def edit(self, text: str) -> LoadRequest:
        body = json.dumps({"text": text}).encode()
        spec = RequestSpec(
            f"/api/v1/souls/{self.facts['soul']}", "PATCH", self.editor | {"If-Match": "*"}, body
        )
        return LoadRequest("edit", spec)

    def push(self, size: int) -> LoadRequest:
        """A push of a file of random text to the source of a workspace of the person."""
        text = base64.b64encode(os.urandom(size * 3 // 4)).decode()
        body = {"files": [{"path": "docs/note.md", "text": text}]}
        path = f"/api/v1/sources/{self.facts['source']}/files:push"
        return LoadRequest("push", RequestSpec(path, "POST", self.editor, json.dumps(body).encode()))

    def refresh(self, source: str) -> LoadRequest:
        return LoadRequest("refresh", RequestSpec(f"/api/v1/sources/{source}:refresh", "POST", self.editor))

    def export(self, workspace: str) -> LoadRequest:
        headers = {"Cookie": self.facts["cookie"]}
        path = f"/w/{workspace}/ledger/export/?{urlencode({'format': 'csv'})}"
        return LoadRequest("export", RequestSpec(path, headers=headers))

    def verify(self, workspace: str) -> LoadRequest:
        cookie = f"{self.facts['cookie']}; dramatis-csrf={CSRF_TOKEN}"
        headers = {"Cookie": cookie, "X-CSRFToken": CSRF_TOKEN}
        return LoadRequest("verify", RequestSpec(f"/w/{workspace}/verify/run/", "POST", headers, b""))


def send(port: int, request: LoadRequest) -> LoadResponse:
    with closing(http.client.HTTPConnection(HOST, port, timeout=TIMEOUT)) as connection:
        return send_request(connection, request)


class Flood:
    """Threads of the large tenant that send as much as the server takes, until the flood is stopped."""

    def __init__(self, port: int, facts: dict[str, Any]) -> None:
        self.port = port
        self.large, self.second = Requests(facts["a"]), Requests(facts["a2"])
        self.others = [Requests(one) for one in facts["others"]]
        self.statuses: Counter[tuple[str, int]] = Counter()
        # The first response with status 429 to a call with data, and to a push.
        self.quota_responses: dict[str, LoadResponse] = {}
        self._stopping, self._lock = Event(), Lock()
        works: list[Callable[[], Iterator[LoadRequest | float]]] = [self.edit, self.refresh, self.verify]
        works += [self.edit_others, self.push]
        works += [self.export] * EXPORT_THREADS
        self._threads = [Thread(target=self._run, args=(work,), daemon=True) for work in works]
        self._threads += [
            Thread(target=self._run, args=(lambda number=number: self.render(number),), daemon=True)
            for number in range(RENDER_THREADS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(TIMEOUT + 5)

    def edit(self) -> Iterator[LoadRequest | float]:
        """Edit the soul of all agents again and again: each time every prompt must be built."""
        turn = 0
        while True:
            turn += 1
            yield self.large.edit(f"Be quick, for the {turn}th time.")
            yield EDIT_PAUSE

    def edit_others(self) -> Iterator[LoadRequest | float]:
        """Edit the souls of the person's other workspaces in turn: builds, events and deliveries of each."""
        turn = 0
        while True:
            for other in self.others:
                turn += 1
                yield other.edit(f"Be quick, for the {turn}th time.")
            yield EDIT_PAUSE

    def push(self) -> Iterator[LoadRequest | float]:
        while True:
            for other in self.others:
                yield other.push(PUSH_BYTES)

    def refresh(self) -> Iterator[LoadRequest | float]:
        while True:
            for source in self.large.facts["sources"]:
                yield self.large.refresh(source)

    def verify(self) -> Iterator[LoadRequest | float]:
        while True:
            yield self.large.verify("a")
            yield self.second.verify("a2")
            yield VERIFY_PAUSE

    def export(self) -> Iterator[LoadRequest | float]:
        while True:
            yield self.large.export("a")

    def render(self, number: int) -> Iterator[LoadRequest | float]:
        turn = number
        while True:
            turn += 1
            yield self.large.render(turn, LARGE_BODY_BYTES if turn % 7 == 0 else CALL_DATA_BYTES)

    def _run(self, work: Callable[[], Iterator[LoadRequest | float]]) -> None:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT)
        with closing(connection):
            for request in work():
                if self._stopping.is_set():
                    return
                if isinstance(request, float):
                    self._stopping.wait(request)
                    continue
                response = send_request(connection, request)
                self._note(response)
                # The next request opens a connection, so that the system distributes them over the processes
                # of the server. Kept connections may all be in one.
                connection.close()

    def _note(self, response: LoadResponse) -> None:
        with self._lock:
            self.statuses[response.request.kind, response.status] += 1
            if response.status == 429 and b"call_quota_exceeded" in response.body:
                self.quota_responses.setdefault(response.request.kind, response)


@dataclass
class FloodResult:
    """How the requests of the flood were answered: number by kind and status, and the first refusals."""

    statuses: dict[str, int] = field(default_factory=dict)
    refusal: dict[str, Any] = field(default_factory=dict)
    push_refusal: dict[str, Any] = field(default_factory=dict)
    retry_after: int = 0


@contextmanager
def running_flood(installation: Installation) -> Iterator[FloodResult]:
    """Run the flood in a process of its own, so that it does not slow down the measurements."""
    facts = {name: installation.facts[name] for name in ("a", "a2", "others")}
    command = [sys.executable, "-m", "tests.promises.flood", str(installation.port)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=set_parent_death_signal,
    )
    assert process.stdin is not None
    result = FloodResult()
    try:
        process.stdin.write(json.dumps(facts) + "\n")
        process.stdin.flush()
        yield result
    finally:
        # The flood ends when its input is closed.
        output, _ = process.communicate(timeout=2 * TIMEOUT)
        vars(result).update(json.loads(output))


def run_flood(port: int) -> None:
    with Flood(port, json.loads(sys.stdin.readline())) as flood:
        sys.stdin.read()
    refused, push = flood.quota_responses.get("render"), flood.quota_responses.get("push")
    result = FloodResult(
        {f"{kind} {status}": number for (kind, status), number in sorted(flood.statuses.items())},
        json.loads(refused.body) if refused else {},
        json.loads(push.body) if push else {},
        int(refused.retry_after or 0) if refused else 0,
    )
    sys.stdout.write(json.dumps(vars(result)))


class Observer:
    """Reads figures from the database, in a thread of its own for the age of the heartbeat."""

    def __init__(self, installation: Installation) -> None:
        self._stopping, self._lock = Event(), Lock()
        self.connection = psycopg.connect(installation.database, autocommit=True)
        self.large = installation.facts["a"]["id"]
        self.person = installation.facts["person"]
        # What an earlier test pushed.
        self._pushed_before = int(self.read(PUSHED_SQL, self.person))
        self.oldest_heartbeat = 0.0
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(10)
        self.connection.close()

    def _watch(self) -> None:
        while not self._stopping.wait(0.5):
            age = float(self.read(HEARTBEAT_SQL, HEARTBEAT_TIMEOUT) or 0)
            self.oldest_heartbeat = max(self.oldest_heartbeat, age)

    def read(self, sql: str, *parameters: Any) -> Any:
        with self._lock:
            row = self.connection.execute(sql, parameters).fetchone()
        return row[0] if row else None

    def read_pushed_bytes(self) -> int:
        return int(self.read(PUSHED_SQL, self.person)) - self._pushed_before

    def read_person_bytes(self) -> int:
        """The bytes that the person has stored in all workspaces, by calls and pushes."""
        return int(self.read(CALLS_SQL, self.person)) + self.read_pushed_bytes()

    def count(self, what: str) -> int:
        return int(self.read(COUNTS_SQL[what], self.large))


def wait_until(condition: Callable[[], bool], seconds: float) -> float:
    """Wait for the condition; return the seconds it took, or infinity."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            return float("inf")
        time.sleep(0.1)
    return time.monotonic() - began


def measure_edit(installation: Installation, seconds: float) -> float:
    """Edit the soul of the small tenant; return the seconds until its bot gets the new text."""
    text = f"Be {time.monotonic_ns()}."
    return measure_change(installation, Requests(installation.facts["b"]).edit(text), text, seconds)


def measure_scan(installation: Installation, seconds: float) -> float:
    """Change a file of the small tenant and request a scan; return the seconds until its bot has the text."""
    requests, text = Requests(installation.facts["b"]), f"Be kind at {time.monotonic_ns()}."
    (installation.folder / "b" / "AGENTS.md").write_text(f"{text}\n")
    request = requests.refresh(installation.facts["b"]["sources"][0])
    return measure_change(installation, request, text, seconds)


def measure_change(installation: Installation, request: LoadRequest, text: str, seconds: float) -> float:
    changed = send(installation.port, request)
    assert changed.is_served, (changed.status, changed.body[:300])
    fetch = Requests(installation.facts["b"]).read_text()
    return changed.seconds + wait_until(lambda: text.encode() in send(installation.port, fetch).body, seconds)


@contextmanager
def compose_workers(installation: Installation, fault: str = "", **variables: str) -> Iterator[list[Worker]]:
    """Run the workers and beat with the command lines of the compose file."""
    names = ["worker", "webhooks", "clock", "long", "beat"]
    environment = {**installation.environment, "DRAMATIS_SOURCE_ROOTS": str(installation.folder), **variables}
    environment |= {FAULT: fault} if fault else {}
    if fault == "one_queue":
        names = ["worker", "beat"]
    workers: list[Worker] = []
    try:
        for name in names:
            arguments = command_of(name)[4:]
            if fault == "one_queue" and name == "worker":
                arguments[arguments.index("--queues") + 1] = "clock"
            if name == "beat":
                arguments[arguments.index("--schedule") + 1] = str(installation.folder / "beat-schedule")
            log = installation.folder / f"{name}.log"
            workers.append(start_celery(log, "tests.promises.worker_faults", arguments, environment))
        for worker, name in zip(workers, names, strict=True):
            if name != "beat":
                wait_until_ready(worker)
        yield workers
    finally:
        for worker in workers:
            worker.kill()


if __name__ == "__main__":
    run_flood(int(sys.argv[1]))
