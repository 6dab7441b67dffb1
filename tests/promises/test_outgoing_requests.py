"""R20: receivers of webhooks are bounded in memory, cannot avoid delays, and reach no internal address."""

import os
import socket
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from core.outgoing import http_sender
from core.outgoing.http_sender import HttpSender, OutgoingError, OutgoingPolicy
from personas.actors import Actor
from personas.events.services import record_event
from personas.models import (
    DeliveryStatus,
    EndpointStatus,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from personas.webhooks import deliver, retries
from personas.webhooks.deliver import DeliveryLoop
from personas.webhooks.retries import MAX_RETRY_AFTER, RETRY_DELAYS
from personas.webhooks.services import MAX_ENDPOINTS, create_endpoint
from tests.factories import make_user, make_workspace
from tests.personas.webhooks.hostile_receivers import (
    SLOW,
    TAILS,
    WHOLE,
    HostileReceivers,
    Parts,
    build_answer,
    hostile_receivers,
    list_answers,
)
from tests.promises import TEST_NAMES
from tests.workers import Worker, start_beat, start_worker, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

MAX_BYTES = 1024**2
ALLOWED = "127.0.0.1/32"
LOCAL = OutgoingPolicy(is_https_only=False, allowed=(ALLOWED,))
CHANGE = {"kind": "soul", "id": 1, "revision": 1, "action": "edited"}
# Names with their answers, one after the other. Of these addresses, 127.0.0.1 is allowed.
NAMES = {
    "inside.example": ["127.0.0.2"],
    "mapped.example": ["::ffff:127.0.0.2"],
    "mixed.example": ["127.0.0.1 127.0.0.2"],
    "changing.example": ["127.0.0.1", "127.0.0.2"],
}
QUICK = {name: tail for name, tail in TAILS.items() if name not in SLOW}
QUICK_ANSWERS: Mapping[str, Callable[[], Parts]] = {
    **{name: answer for name, answer in WHOLE.items() if name not in SLOW},
    **{name: build_answer("200 OK", tail) for name, tail in QUICK.items()},
}
FAILING_ANSWERS: Mapping[str, Callable[[], Parts]] = {
    name: build_answer("503 Busy", TAILS[name])
    for name in (
        "chunk -1",
        "chunk -2",
        "strange text",
        "long headers",
        "Retry-After that overflows",
        "close",
    )
}


@contextmanager
def canary(port: int) -> Iterator[list[float]]:
    """Count the connections to an internal address that is not allowed."""
    times: list[float] = []
    with socket.create_server(("127.0.0.2", port)) as listener:
        listener.setblocking(False)
        yield times
        while True:
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                return
            times.append(time.monotonic())


# --- memory --------------------------------------------------------------------------------------------


def measure_peaks(answers: Mapping[str, Callable[[], Parts]], seconds: float) -> dict[str, int]:
    """The most bytes that Python allocated during a request to each receiver."""
    peaks = {}
    with hostile_receivers(answers) as receivers:
        sender = HttpSender(LOCAL, total_seconds=seconds)
        tracemalloc.start()
        try:
            for name in answers:
                tracemalloc.clear_traces()
                before = tracemalloc.get_traced_memory()[0]
                with suppress(OutgoingError):
                    sender.post(receivers.url_of(name), b"{}", {})
                peaks[name] = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
    return peaks


def check_memory(answers: Mapping[str, Callable[[], Parts]] = QUICK_ANSWERS) -> dict[str, int]:
    peaks = measure_peaks(answers, 15)
    assert {name: peak for name, peak in peaks.items() if peak > MAX_BYTES} == {}
    return peaks


@pytest.mark.promise("R20")
def test_a_hostile_answer_uses_little_memory(record_property):
    peaks = check_memory()
    record_property(
        "measured",
        f"{len(peaks)} kinds of answers: at most {max(peaks.values()) / 1024:.0f} KiB allocated each",
    )


@pytest.mark.planted
@pytest.mark.promise("R20")
def test_a_negative_chunk_size_without_a_limit_is_found(monkeypatch):
    monkeypatch.setattr(http_sender, "MAX_RECEIVED_BYTES", 2**60)
    with pytest.raises(AssertionError, match="chunk -1"):
        check_memory({"chunk -1": QUICK_ANSWERS["chunk -1"]})


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x03\xff\xff" + b"x" * 65_536, b"\x15\x03\x03\x00\x02\x02\x28", b"", b"x"]
)
@pytest.mark.promise("R20")
def test_garbage_instead_of_tls_is_a_failed_attempt(data):
    def send() -> Parts:
        yield data

    with hostile_receivers({"0": send}) as receivers:
        receivers.answer = lambda connection: connection.close() if not data else connection.sendall(data)  # type: ignore[method-assign]
        url = f"https://127.0.0.1:{receivers.port}/"
        with pytest.raises(OutgoingError):
            HttpSender(LOCAL, total_seconds=1).post(url, b"{}", {})


# --- attempts and delays -------------------------------------------------------------------------------


def create_owned_workspace(slug: str) -> Workspace:
    return make_workspace(slug, owner=make_user(slug))


def add_receivers(receivers: HostileReceivers, slug: str) -> list[Workspace]:
    """Create an endpoint for each answer, in as many workspaces as it takes, and an event in each."""
    workspaces = []
    for first in range(0, len(receivers.names), MAX_ENDPOINTS):
        workspace = create_owned_workspace(f"{slug}-{first}")
        workspaces.append(workspace)
        for name in receivers.names[first : first + MAX_ENDPOINTS]:
            values = {"name": name[:80], "url": receivers.url_of(name)}
            create_endpoint(workspace, values, by=Actor("alice"))
        record_event(workspace, "record.changed", CHANGE)
    return workspaces


def check_attempts(receivers: HostileReceivers, workspaces: list[Workspace]) -> int:
    """Check that each request is recorded, and that the next one waited. Return their number."""
    attempts = WebhookAttempt.unscoped.filter(workspace__in=workspaces)
    names = attempts.values_list("delivery__endpoint__name", flat=True)
    assert Counter(names) == {name[:80]: len(times) for name, times in receivers.requested.items()}
    for delivery in WebhookDelivery.unscoped.filter(workspace__in=workspaces):
        times = list(attempts.filter(delivery=delivery).order_by("at").values_list("at", flat=True))
        assert delivery.attempt_count == len(times)
        assert len(times) >= 1, delivery.endpoint_id
        for number, (one, other) in enumerate(pairwise(times)):
            assert other - one >= RETRY_DELAYS[number]
        if delivery.status == DeliveryStatus.PENDING:
            delay = delivery.due_at - times[-1]
            assert RETRY_DELAYS[len(times) - 1] <= delay
            assert delay <= MAX_RETRY_AFTER * 1.2 + timedelta(minutes=1)
    for endpoint in WebhookEndpoint.unscoped.filter(workspace__in=workspaces):
        failed = attempts.filter(delivery__endpoint=endpoint).exclude(status__range=(200, 299)).count()
        assert endpoint.failures == failed, endpoint.name
    return len(names)


def run_jobs(slug: str, answers: Mapping[str, Callable[[], Parts]]) -> None:
    """Run the job of a worker three times, as beat does every second, with receivers that fail."""
    with hostile_receivers(answers) as receivers:
        workspaces = add_receivers(receivers, slug)
        for _ in range(3):
            DeliveryLoop(sender=HttpSender(LOCAL, total_seconds=5), accept_seconds=1).run()
        check_attempts(receivers, workspaces)


@pytest.fixture
def _only_one_address(settings: Any) -> None:
    settings.DRAMATIS_OUTGOING_ALLOWED = [ALLOWED]


@pytest.mark.promise("R20")
@pytest.mark.usefixtures("_only_one_address")
def test_every_attempt_at_a_hostile_receiver_is_recorded_and_the_next_one_waits():
    run_jobs("hostile", FAILING_ANSWERS)


def raise_in_turn(patch: pytest.MonkeyPatch) -> None:
    """An exception ends the turn without an attempt, as OverflowError in the date of a header did."""

    def parse(value: str, now: Any) -> timedelta:
        return timedelta(seconds=int(float("1" + "0" * len(value)))) * 10**9

    def attempt(turn: Any, send: Any, delivery: Any) -> Any:
        return send(turn, delivery)

    patch.setattr(deliver, "parse_retry_after", parse)
    patch.setattr(deliver.EndpointTurn, "attempt", attempt)


def forget_delays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retries, "RETRY_DELAYS", (timedelta(0),) * len(RETRY_DELAYS))
    patch.setattr(deliver, "get_hold", lambda *_: timedelta(0))


@pytest.mark.planted
@pytest.mark.promise("R20")
@pytest.mark.usefixtures("_only_one_address")
@pytest.mark.parametrize("plant", [raise_in_turn, forget_delays])
def test_a_worker_that_does_not_record_or_delay_is_found(monkeypatch, plant):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_jobs("faulty", dict(list(FAILING_ANSWERS.items())[:2]))


# --- 200 receivers and a real worker --------------------------------------------------------------------


def reset_peak(pid: int) -> int:
    """Start the measurement of the peak of resident memory again. Return the resident bytes now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return read_memory(pid, "VmRSS")


def read_memory(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    names = " ".join(f"{name}={'|'.join(answers).replace(' ', ',')}" for name, answers in NAMES.items())
    environment = {"DRAMATIS_OUTGOING_ALLOWED": ALLOWED, TEST_NAMES: names}
    processes = [start_beat(tmp_path / "beat.log", environment=environment)]
    try:
        processes.append(
            start_worker(
                tmp_path / "worker.log", application="tests.promises.worker_faults", environment=environment
            )
        )
        yield processes[-1]
    finally:
        for process in processes:
            process.kill()


def count_attempts(workspaces: list[Workspace]) -> int:
    rows = WebhookAttempt.unscoped.filter(workspace__in=workspaces)
    return rows.values("delivery__endpoint").distinct().count()


def stop_deliveries(workspaces: list[Workspace]) -> None:
    """Disable the endpoints, and wait until the requests under way have ended."""
    endpoints = WebhookEndpoint.unscoped.filter(workspace__in=workspaces)
    endpoints.update(status=EndpointStatus.DISABLED)
    assert wait_for(lambda: not endpoints.filter(leased_until__gt=timezone.now()).exists(), 60)


@pytest.mark.hard
@pytest.mark.redis
@pytest.mark.promise("R20")
@pytest.mark.usefixtures("own_broker", "_only_one_address")
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs the memory figures of Linux")
def test_200_hostile_receivers_are_bounded_and_recorded(worker, record_property):
    answers = list_answers()
    with hostile_receivers(answers) as receivers, canary(receivers.port) as inside:
        warm = create_owned_workspace("warm")
        create_endpoint(warm, {"name": "First", "url": receivers.url_of("101")}, by=Actor("alice"))
        record_event(warm, "record.changed", CHANGE)
        assert wait_for(lambda: count_attempts([warm]) == 1, 60)
        stop_deliveries([warm])
        receivers.requested.clear()
        [pid] = worker.pool()
        before = reset_peak(pid)
        workspaces = add_receivers(receivers, "hostile")
        named = create_owned_workspace("named")
        for name in NAMES:
            values = {"name": name, "url": f"http://{name}:{receivers.port}/{receivers.names.index('101')}"}
            create_endpoint(named, values, by=Actor("alice"))
        record_event(named, "record.changed", CHANGE)
        expected = len(answers) + len(NAMES)
        wait_for(lambda: count_attempts([*workspaces, named]) == expected, 240)
        # At its second attempt, changing.example leads inside.
        second = WebhookDelivery.objects.in_workspace(named).filter(endpoint__name="changing.example")
        assert wait_for(lambda: second.filter(attempt_count=2).exists(), 90)
        stop_deliveries([*workspaces, named])
        assert worker.pool() == [pid]
        growth = read_memory(pid, "VmHWM") - before
        count = check_named(receivers, named) + check_attempts(receivers, workspaces)
    concurrent = deliver.MAX_THREADS
    record_property(
        "measured",
        f"{len(answers)} hostile receivers, {concurrent} at a time: the worker grew by "
        f"{growth / MAX_BYTES:.1f} MiB at its peak; {count} requests, all recorded; "
        f"{len(inside)} connections to internal addresses",
    )
    assert growth <= concurrent * MAX_BYTES
    assert inside == []


def check_named(receivers: HostileReceivers, workspace: Workspace) -> int:
    """Only changing.example was requested, once; all other attempts were refused. Remove these requests."""
    attempts = WebhookAttempt.objects.in_workspace(workspace).order_by("at")
    sent = attempts.exclude(status=None).values_list("delivery__endpoint__name", flat=True)
    assert list(sent) == ["changing.example"]
    errors = set(attempts.filter(status=None).values_list("error", flat=True))
    assert errors == {"This URL cannot be used: its host has no public address."}
    names = set(attempts.filter(status=None).values_list("delivery__endpoint__name", flat=True))
    assert names == set(NAMES)
    receivers.requested["101"].pop()
    return len(sent)
