"""Limits on reading request bodies."""

import time
from contextlib import suppress
from io import BytesIO
from threading import Event, Thread

import pytest

from core.request_body import (
    SLOT_WAIT_SECONDS,
    BodyReadError,
    BodyReadTimeout,
    ClientSlots,
    LimitedBody,
    TooManyBodyReads,
)


class StoppedStream:
    """A body whose client sends nothing until `ended` is set."""

    def __init__(self) -> None:
        self.started, self.ended = Event(), Event()

    def read(self, size: int) -> bytes:
        self.started.set()
        self.ended.wait(60)
        return b""


@pytest.fixture
def stopped_bodies():
    """Start threads that read bodies which do not arrive."""
    streams, threads = [], []

    def start(number: int, *, is_authenticated: bool) -> None:
        for _ in range(number):
            stream = StoppedStream()
            body = LimitedBody(stream)
            body.is_authenticated = is_authenticated

            def read(body: LimitedBody = body) -> None:
                with suppress(BodyReadError):
                    body.read(10)

            streams.append(stream)
            threads.append(Thread(target=read))
            threads[-1].start()
            assert stream.started.wait(60)

    yield start
    for stream in streams:
        stream.ended.set()
    for thread in threads:
        thread.join()


def authenticated_body(data: bytes) -> LimitedBody:
    body = LimitedBody(BytesIO(data))
    body.is_authenticated = True
    return body


def test_a_body_is_read_as_it_was_sent():
    body = LimitedBody(BytesIO(b"one\ntwo"))
    assert (body.readline(7), body.read(3)) == (b"one\n", b"two")


def test_a_body_with_fewer_bytes_than_announced_is_an_error():
    body = LimitedBody(BytesIO(b"half"))
    with pytest.raises(BodyReadError) as caught:
        body.read(8)
    assert caught.value.status == 400
    assert body.error is caught.value
    with pytest.raises(BodyReadError):
        body.read(1)


def test_a_body_that_was_cut_off_after_the_time_limit_is_a_timeout(settings):
    settings.DRAMATIS_BODY_SECONDS = 0
    with pytest.raises(BodyReadTimeout):
        LimitedBody(BytesIO(b"half")).read(8)


def test_only_so_many_threads_read_at_once(settings, stopped_bodies):
    settings.DRAMATIS_BODY_THREADS = 3
    stopped_bodies(3, is_authenticated=True)
    with pytest.raises(TooManyBodyReads) as caught:
        authenticated_body(b"data").read(4)
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "2"})


def test_requests_without_a_key_leave_slots_to_others(settings, stopped_bodies):
    settings.DRAMATIS_BODY_THREADS = 8
    stopped_bodies(2, is_authenticated=False)
    with pytest.raises(TooManyBodyReads):
        LimitedBody(BytesIO(b"data")).read(4)
    assert authenticated_body(b"data").read(4) == b"data"


def test_a_slot_that_becomes_free_soon_is_waited_for(settings):
    settings.DRAMATIS_BODY_THREADS = 1
    slots, result = ClientSlots(), []
    assert slots.acquire(is_few=False)
    waiting = Thread(target=lambda: result.append(slots.acquire(is_few=False)))
    waiting.start()
    slots.release(is_few=False)
    waiting.join()
    assert result == [True]


@pytest.mark.slow
def test_no_request_waits_for_slots_of_stalled_bodies(settings):
    settings.DRAMATIS_BODY_THREADS = 1
    slots = ClientSlots()
    assert slots.acquire(is_few=False)
    time.sleep(SLOT_WAIT_SECONDS * 1.2)
    began = time.monotonic()
    assert not slots.acquire(is_few=False)
    assert time.monotonic() - began < SLOT_WAIT_SECONDS
