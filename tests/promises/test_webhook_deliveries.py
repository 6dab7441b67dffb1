"""Webhooks with real workers: a receiver that hangs delays no other, and killed workers lose no event."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from personas.actors import Actor
from personas.events.services import record_event
from personas.models import DeliveryStatus, Event, WebhookDelivery, WebhookEndpoint, Workspace
from personas.webhooks.services import create_endpoint, delete_endpoint
from tests.frozen_process import freeze, thaw
from tests.personas.webhooks.receivers import Answer, Receiver, receiving
from tests.servers import Server
from tests.workers import Worker, start_beat, start_worker, wait_for

pytestmark = [
    pytest.mark.hard,
    pytest.mark.redis,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("own_broker"),
]

EVENTS, EVENTS_PER_SECOND = 2_000, 60
MAX_P99_SECONDS = 5.0
# The p99 on a busy machine, as a multiple of that without the receiver that hangs.
MAX_RATIO = 1.5
KILLS = 10
OUTAGE_EVENTS, OUTAGE_SECONDS = 50, 6
ALLOWED = "127.0.0.0/8"
CHANGE = {"kind": "soul", "id": 1, "revision": 1, "action": "edited"}
Start = Callable[[str], Worker]


@pytest.fixture
def start(tmp_path: Path, settings: Any) -> Iterator[Start]:
    """Start workers, and beat with the first."""
    settings.DRAMATIS_OUTGOING_ALLOWED = [ALLOWED]
    environment = {"DRAMATIS_OUTGOING_ALLOWED": ALLOWED}
    processes = [start_beat(tmp_path / "beat.log", environment=environment)]

    def start_one(name: str) -> Worker:
        processes.append(start_worker(tmp_path / f"{name}.log", environment=environment))
        return processes[-1]

    yield start_one
    for process in processes:
        process.kill()


def add_endpoints(workspace: Workspace, receivers: list[Receiver]) -> None:
    for number, receiver in enumerate(receivers):
        create_endpoint(workspace, {"name": f"Desk {number}", "url": receiver.url}, by=Actor("alice"))


def count_received(receiver: Receiver) -> int:
    return len({request.id for request in receiver.received})


def test_a_receiver_that_hangs_delays_no_other(workspace, start, capsys):
    for name in ("one", "two"):
        start(name)
    with receiving(Answer(wait=60)) as slow:
        delays = deliver_events(workspace, [slow])
    p99 = get_p99(delays)
    figures = f"p50 {delays[len(delays) // 2]:.2f} s, p99 {p99:.2f} s, max {delays[-1]:.2f} s"
    limit = MAX_P99_SECONDS
    if p99 > limit:
        # The machine is too busy for this rate: compare with the same events without the receiver that hangs.
        alone = get_p99(deliver_events(workspace, []))
        limit = alone * MAX_RATIO
        figures += f"; p99 without the receiver that hangs {alone:.2f} s"
    with capsys.disabled():
        print(f"\n{len(delays):,} deliveries: {figures}")
    assert p99 <= limit


def deliver_events(workspace: Workspace, others: list[Receiver]) -> list[float]:
    """Record events for four endpoints and `others`. Return the sorted delays of the four, in seconds."""
    before = len(events_of(workspace))
    with receiving() as a, receiving() as b, receiving() as c, receiving() as d:
        fast = [a, b, c, d]
        add_endpoints(workspace, [*fast, *others])
        committed: list[float] = []
        for _ in range(EVENTS):
            began = time.monotonic()
            record_event(workspace, "record.changed", CHANGE)
            committed.append(time.monotonic())
            time.sleep(max(0.0, 1 / EVENTS_PER_SECOND - (time.monotonic() - began)))
        wait_for(lambda: all(count_received(receiver) >= EVENTS for receiver in fast), 90)
        ids = [f"evt_{pk}" for pk in events_of(workspace)[before:]]
        times = dict(zip(ids, committed, strict=True))
        assert [count_received(receiver) for receiver in fast] == [EVENTS] * 4
        for endpoint in WebhookEndpoint.objects.in_workspace(workspace):
            delete_endpoint(endpoint, by=Actor("alice"))
        return sorted(request.at - times[request.id] for receiver in fast for request in receiver.received)


def get_p99(delays: list[float]) -> float:
    return delays[int(len(delays) * 0.99)]


def events_of(workspace: Workspace) -> list[int]:
    rows = Event.objects.in_workspace(workspace).filter(type="record.changed", data=CHANGE)
    return list(rows.order_by("pk").values_list("pk", flat=True))


@contextmanager
def frozen(broker: Server) -> Iterator[None]:
    freeze(broker.process)
    try:
        yield
    finally:
        thaw(broker.process)


@contextmanager
def full(broker: Server) -> Iterator[None]:
    """The broker has no memory left: it rejects every job, and reads still work."""
    with redis.Redis.from_url(broker.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("job", 1)
        yield
        client.config_set("maxmemory", 0)


@pytest.mark.parametrize("outage", [frozen, full])
def test_events_wait_in_the_database_while_redis_takes_no_jobs(workspace, start, own_broker, outage, capsys):
    with receiving() as receiver:
        add_endpoints(workspace, [receiver])
        start("one")
        record_event(workspace, "record.changed", CHANGE)
        assert wait_for(lambda: count_received(receiver) == 1, 30)
        with outage(own_broker):
            began = time.monotonic()
            for _ in range(OUTAGE_EVENTS):
                record_event(workspace, "record.changed", CHANGE)
            seconds = time.monotonic() - began
            time.sleep(OUTAGE_SECONDS)
        ended = time.monotonic()
        # A worker ends if the broker has no memory; the supervisor starts another.
        start("two")
        expected = {f"evt_{pk}" for pk in events_of(workspace)}
        assert len(expected) == OUTAGE_EVENTS + 1
        wait_for(lambda: expected <= {request.id for request in receiver.received}, 60)
        with capsys.disabled():
            print(
                f"\n{OUTAGE_EVENTS} events in {seconds:.2f} s while Redis was {outage.__name__}; delivered "
                f"{time.monotonic() - ended:.1f} s after it took jobs again"
            )
        assert expected - {request.id for request in receiver.received} == set()
        assert seconds < OUTAGE_EVENTS * 0.1


def test_killed_workers_lose_no_event(workspace, start):
    with receiving(Answer(wait=0.01)) as a, receiving(Answer(wait=0.01)) as b:
        add_endpoints(workspace, [a, b])
        for number in range(KILLS):
            worker = start(f"worker-{number}")
            for _ in range(40):
                record_event(workspace, "record.changed", CHANGE)
            time.sleep(random.uniform(1.2, 2.5))  # noqa: S311  # not for secrets
            worker.kill()
        start("last")
        expected = {f"evt_{pk}" for pk in events_of(workspace)}
        assert len(expected) == 40 * KILLS
        wait_for(lambda: all(expected <= {request.id for request in one.received} for one in (a, b)), 90)
        assert [expected - {request.id for request in receiver.received} for receiver in (a, b)] == [
            set(),
            set(),
        ]
        pending = WebhookDelivery.objects.in_workspace(workspace).exclude(status=DeliveryStatus.DELIVERED)
        assert wait_for(lambda: not pending.exists(), 30)
