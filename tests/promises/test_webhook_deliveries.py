"""Webhooks with real workers: a receiver that hangs delays no other, and killed workers lose no event."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from personas.actors import Actor
from personas.events.services import record_event
from personas.models import DeliveryState, Event, WebhookDelivery, Workspace
from personas.webhooks.services import create_endpoint
from tests.frozen_process import freeze, thaw
from tests.personas.webhooks.receivers import Answer, Receiver, receiving
from tests.workers import Worker, start_beat, start_worker, wait_for

pytestmark = [
    pytest.mark.hard,
    pytest.mark.redis,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("own_broker"),
]

EVENTS, EVENTS_PER_SECOND = 2_000, 60
MAX_P99_SECONDS = 5.0
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
    with (
        receiving() as a,
        receiving() as b,
        receiving() as c,
        receiving() as d,
        receiving(Answer(wait=60)) as slow,
    ):
        add_endpoints(workspace, [a, b, c, d, slow])
        for name in ("one", "two"):
            start(name)
        committed: dict[str, float] = {}
        for number in range(EVENTS):
            began = time.monotonic()
            record_event(workspace, "record.changed", CHANGE)
            committed[str(number)] = time.time()
            time.sleep(max(0.0, 1 / EVENTS_PER_SECOND - (time.monotonic() - began)))
        fast = [a, b, c, d]
        wait_for(lambda: all(count_received(receiver) >= EVENTS for receiver in fast), 60)
        ids = [f"evt_{pk}" for pk in events_of(workspace)]
        times = dict(zip(ids, committed.values(), strict=True))
        delays = sorted(request.at - times[request.id] for receiver in fast for request in receiver.received)
        p99 = delays[int(len(delays) * 0.99)]
        with capsys.disabled():
            middle = delays[len(delays) // 2]
            print(
                f"\n{len(delays):,} deliveries: p50 {middle:.2f} s, p99 {p99:.2f} s, max {delays[-1]:.2f} s"
            )
        assert [count_received(receiver) for receiver in fast] == [EVENTS] * 4
        assert p99 <= MAX_P99_SECONDS


def events_of(workspace: Workspace) -> list[int]:
    rows = Event.objects.in_workspace(workspace).filter(type="record.changed", data=CHANGE)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def test_events_wait_in_the_database_while_redis_does_not_respond(workspace, start, own_broker, capsys):
    with receiving() as receiver:
        add_endpoints(workspace, [receiver])
        start("one")
        record_event(workspace, "record.changed", CHANGE)
        assert wait_for(lambda: count_received(receiver) == 1, 30)
        freeze(own_broker.process)
        try:
            began = time.monotonic()
            for _ in range(OUTAGE_EVENTS):
                record_event(workspace, "record.changed", CHANGE)
            seconds = time.monotonic() - began
            time.sleep(OUTAGE_SECONDS)
        finally:
            thaw(own_broker.process)
        thawed = time.monotonic()
        expected = {f"evt_{pk}" for pk in events_of(workspace)}
        assert len(expected) == OUTAGE_EVENTS + 1
        wait_for(lambda: expected <= {request.id for request in receiver.received}, 60)
        with capsys.disabled():
            print(
                f"\n{OUTAGE_EVENTS} events in {seconds:.2f} s without Redis; delivered "
                f"{time.monotonic() - thawed:.1f} s after it responded again"
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
        pending = WebhookDelivery.objects.in_workspace(workspace).exclude(state=DeliveryState.DELIVERED)
        assert wait_for(lambda: not pending.exists(), 30)
