"""Kill a worker for a while, and run the jobs of the schedule."""

from collections.abc import Iterator
from contextlib import contextmanager

from project.celery import app as celery_app
from project.jobs.schedule import JOB_SCHEDULE
from tests.pytest_servers import get_citus_cluster


@contextmanager
def lost_worker(number: int) -> Iterator[str]:
    """Kill a worker, yield its address, and start it again."""
    cluster = get_citus_cluster()
    assert cluster is not None
    # In the order of their addresses, as Citus has them.
    worker = sorted(cluster.workers, key=lambda node: node.port)[number]
    worker.stop("immediate")
    try:
        yield f"127.0.0.1:{worker.port}"
    finally:
        worker.start()


def run_scheduled_jobs() -> dict[str, str]:
    """Run every job of the schedule in this process, and return the errors of those that fail."""
    celery_app.loader.import_default_modules()
    failed = {}
    for entry in JOB_SCHEDULE.values():
        try:
            celery_app.tasks[entry["task"]]()
        except Exception as error:  # noqa: BLE001
            failed[entry["task"]] = f"{type(error).__name__}: {error}"[:300]
    return failed
