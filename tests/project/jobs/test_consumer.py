"""A worker goes on after the broker was frozen at the end of a job."""

import time
from pathlib import Path

import pytest

from tests.frozen_process import freeze, thaw
from tests.project.jobs.gated_worker import block_job, touch_job
from tests.promises import FAULT
from tests.servers import start_redis
from tests.workers import start_worker, talking_to, wait_for

# The product waits a second for the broker; after that time the acknowledgement of the job has failed.
ACK_SECONDS = 2.5
APPLICATION = "tests.project.jobs.gated_worker"


@pytest.fixture
def broker():
    server = start_redis()
    yield server
    thaw(server.process)
    server.stop()


def runs_next_job(broker, folder: Path, fault: str = "", seconds: float = 120) -> bool:
    """Freeze the broker while a job ends; return whether the worker runs the next one after the thaw."""
    gate, mark, log = folder / "gate", folder / "mark", folder / "worker.log"
    gate.touch()
    with talking_to(broker.url):
        worker = start_worker(
            log, application=APPLICATION, environment={"REDIS_URL": broker.url, FAULT: fault}
        )
        try:
            block_job.delay(str(gate))
            assert wait_for(gate.with_suffix(".reached").exists)
            freeze(broker.process)
            gate.unlink()
            assert wait_for(gate.with_suffix(".done").exists)
            time.sleep(ACK_SECONDS)
            thaw(broker.process)
            touch_job.delay(str(mark))
            return bool(wait_for(mark.exists, seconds))
        finally:
            worker.kill()


@pytest.mark.slow
@pytest.mark.promise("R6")
def test_the_worker_goes_on_after_a_failed_acknowledgement(broker, tmp_path):
    assert runs_next_job(broker, tmp_path)


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R6")
def test_celerys_own_consumer_is_found(broker, tmp_path):
    assert not runs_next_job(broker, tmp_path, "celery_consumer", seconds=12)
    # The next job did not just come late.
    assert "Couldn't ack" in (tmp_path / "worker.log").read_text()
