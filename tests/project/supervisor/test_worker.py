"""Jobs through a real broker and a real worker process."""

import time
from pathlib import Path

import pytest
from django.core.cache import cache
from kombu.exceptions import OperationalError

from project.celery import app
from project.tasks import HEARTBEAT_KEY, record_heartbeat_job
from tests.frozen_process import freeze, thaw
from tests.servers import start_redis
from tests.workers import wait_for

pytestmark = pytest.mark.redis
ATTEMPTS = 8


@pytest.mark.django_db(transaction=True)
def test_a_job_goes_through_broker_and_worker(celery_worker):
    cache.delete(HEARTBEAT_KEY)
    record_heartbeat_job.delay()
    assert wait_for(lambda: cache.get(HEARTBEAT_KEY)), Path(celery_worker.log).read_text()


@pytest.fixture
def own_broker():
    """Return a separate broker, which a test may freeze or kill, and a Celery application that uses it."""
    server = start_redis()
    other = type(app)("other", set_as_current=False)
    other.config_from_object(app.conf)
    other.conf["broker_url"] = "redis+socket://" + server.url.removeprefix("unix://")
    yield server, other
    thaw(server.process)
    server.stop()


def publish(application):
    started_at = time.monotonic()
    with pytest.raises((OperationalError, OSError, ConnectionError, TimeoutError)):
        application.send_task("project.tasks.record_heartbeat_job")
    return time.monotonic() - started_at


def is_ever_faster(application, seconds):
    """A busy machine delays some attempts, a missing limit all."""
    return any(publish(application) < seconds for _ in range(ATTEMPTS))


@pytest.mark.slow
def test_a_frozen_broker_holds_a_page_for_little_more_than_a_second(own_broker):
    server, application = own_broker
    application.send_task("project.tasks.record_heartbeat_job")
    freeze(server.process)
    assert is_ever_faster(application, 1.6)


def test_a_missing_broker_is_noticed_at_once(own_broker):
    server, application = own_broker
    server.process.kill()
    server.process.wait()
    assert is_ever_faster(application, 1.0)
