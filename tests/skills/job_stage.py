"""Test harness for refresh jobs: a Redis broker, workers, beat and watcher as separate processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from core.task_queue import breaker
from project.redis_client import connect_redis
from skills.models import ContextFile, FileRevision, RefreshRun, Source
from skills.refresh.runs import request_refresh
from skills.tasks import enqueue_refresh_run, sweep_sources_job
from tests.factories import BY
from tests.frozen_process import freeze, thaw
from tests.servers import Server, start_redis
from tests.slow_worker import GATE, LEASE
from tests.workers import Worker, start_beat, start_command, start_worker, talking_to, wait_for

_numbers = count(1)


@dataclass
class JobStage:
    """Broker and worker processes for refreshing a source; tests may freeze, flush or kill them."""

    broker: Server
    scratch: Path
    # Value of DRAMATIS_SOURCE_ROOTS in those processes.
    roots: Path
    processes: list[Worker] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {"REDIS_URL": self.broker.url, "DRAMATIS_SOURCE_ROOTS": str(self.roots)}

    def gate(self, name: str = "gate") -> Path:
        return self.scratch / name

    def worker(self, *, gate: str = "gate", lease: float | None = None) -> Worker:
        environment = {GATE: str(self.gate(gate)), **self.environment}
        environment |= {LEASE: str(lease)} if lease else {}
        log = self.scratch / f"worker-{next(_numbers)}"
        return self.keep(start_worker(log, application="tests.slow_worker", environment=environment))

    def beat(self) -> Worker:
        return self.keep(start_beat(self.scratch / "beat", environment=self.environment))

    def watcher(self) -> Worker:
        log = self.scratch / f"watcher-{next(_numbers)}"
        return self.keep(start_command(log, ["manage.py", "watch_sources"], self.environment))

    def keep(self, process: Worker) -> Worker:
        self.processes.append(process)
        return process

    def wait_at(self, gate: str = "gate") -> bool:
        """Return whether a refresh has read all files and waits at the gate before storing them."""
        reached = self.gate(gate).with_suffix(".reached")
        return bool(wait_for(reached.exists))

    def log(self) -> str:
        """Return the end of each process's log."""
        return "\n".join(process.log.read_text()[-3_000:] for process in self.processes)

    def flush(self) -> None:
        with connect_redis(self.broker.url) as client:
            client.flushall()

    def freeze(self) -> None:
        freeze(self.broker.process)

    def thaw(self) -> None:
        thaw(self.broker.process)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        self.thaw()
        self.broker.stop()


@contextmanager
def job_stage(scratch: Path, roots: Path) -> Iterator[JobStage]:
    stage = JobStage(start_redis(), scratch, roots)
    breaker.record_success()
    try:
        with talking_to(stage.broker.url):
            yield stage
    finally:
        stage.close()
        breaker.record_success()


def request_run(source: Source) -> RefreshRun:
    run = request_refresh(source, cause="person", by=BY)
    enqueue_refresh_run(run)
    return run


def sweep() -> None:
    """Enqueue the sweep that the scheduler runs every ten seconds."""
    sweep_sources_job.delay()


def list_run_statuses(source: Source) -> list[str]:
    """Return the status of each run, oldest first."""
    rows = RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source)
    return list(rows.order_by("pk").values_list("status", flat=True))


def is_at_rest(source: Source) -> bool:
    statuses = list_run_statuses(source)
    return bool(statuses) and not {"queued", "running"} & set(statuses)


def is_done_once(source: Source) -> bool:
    return is_at_rest(source) and list_run_statuses(source).count("done") == 1


def get_active_text(source: Source, path: str = "AGENTS.md") -> str:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source, path=path)
    file = rows.select_related("active__content").first()
    return file.active.content.text if file and file.active else ""


def count_revisions(source: Source, path: str = "AGENTS.md") -> int:
    rows = FileRevision.objects.in_workspace(source.workspace_id)
    return rows.filter(file__source=source, file__path=path).count()
