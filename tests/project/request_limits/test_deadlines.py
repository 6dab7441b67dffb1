"""Requests after their deadline: the running statement is cancelled and no other one is started."""

import time
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse, StreamingHttpResponse

from core.request_body import LimitedBody
from core.request_deadline import RequestTimeout, check_request_deadline
from project.request_limits.deadlines import RequestDeadlines, deadlines
from project.request_limits.wsgi import MAX_BUFFERED_BYTES, RequestLimits
from tests.promises import SLOW_STATEMENTS


def empty_body() -> LimitedBody:
    return LimitedBody(BytesIO())


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_statement_of_a_late_request_is_cancelled(settings):
    settings.DRAMATIS_REQUEST_SECONDS = 1
    requests, ended = RequestDeadlines(), Event()

    def watch() -> None:
        while not ended.wait(0.1):
            requests.cancel_expired()

    watchdog, began = Thread(target=watch), time.monotonic()
    requests.begin("/slow", empty_body())
    watchdog.start()
    try:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET statement_timeout = 0")
            with pytest.raises(RequestTimeout):
                cursor.execute(SLOW_STATEMENTS[connection.vendor])
            # A further statement is refused without asking the database.
            with pytest.raises(RequestTimeout):
                cursor.execute("SELECT 1")
        assert time.monotonic() - began < 10
    finally:
        ended.set()
        watchdog.join()
        requests.end()
        connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
        if connection.vendor == "postgresql":
            # The pool may give this connection to the next test.
            cursor.execute("RESET statement_timeout")


@pytest.mark.django_db
def test_a_request_in_time_is_not_cancelled(settings):
    settings.DRAMATIS_REQUEST_SECONDS = 60
    requests = RequestDeadlines()
    requests.begin("/fast", empty_body())
    requests.cancel_expired()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert not requests.has_slow_request(30)
    assert requests.has_slow_request(-1)
    requests.end()
    assert not requests.has_slow_request(-1)


# --- WSGI --------------------------------------------------------------------------------------------------


def call(application: RequestLimits) -> tuple[str, Any]:
    """The status and the response object."""
    statuses = []
    environ = {"wsgi.input": BytesIO(), "PATH_INFO": "/"}
    response = application(environ, lambda status, headers: statuses.append(status))
    return statuses[-1], response


class ClosingStream(StreamingHttpResponse):
    def __init__(self, closed: list[bool], chunks: Iterator[bytes]) -> None:
        super().__init__(chunks)
        self.closed_calls = closed

    def close(self) -> None:
        super().close()
        self.closed_calls.append(True)


def streaming_application(size: int, closed: list[bool]) -> RequestLimits:
    def application(environ, start):
        start("200 OK", [])
        return ClosingStream(closed, (b"x" * 65_536 for _ in range(size // 65_536)))

    return RequestLimits(application)


@pytest.mark.django_db
def test_the_deadline_ends_with_the_response():
    def application(environ, start):
        start("200 OK", [])
        return HttpResponse(b"done")

    _, response = call(RequestLimits(application))
    assert deadlines.has_slow_request(-1)
    assert b"".join(response) == b"done"
    response.close()
    assert not deadlines.has_slow_request(-1)


@pytest.mark.django_db
def test_few_large_streams_run_at_once(settings):
    settings.DRAMATIS_BODY_THREADS = 8
    closed: list[bool] = []
    application = streaming_application(2 * MAX_BUFFERED_BYTES, closed)
    first, second, third = (call(application) for _ in range(3))
    assert [status for status, _ in (first, second, third)] == ["200 OK", "200 OK", "503 Service Unavailable"]
    assert b"".join(third[1]) != b""
    for _, response in (first, second, third):
        response.close()
    assert closed == [True] * 3
    status, response = call(application)
    response.close()
    assert status == "200 OK"


@pytest.mark.django_db
def test_a_small_stream_needs_no_slot(settings):
    settings.DRAMATIS_BODY_THREADS = 1
    application = streaming_application(MAX_BUFFERED_BYTES, [])
    responses = [call(application) for _ in range(3)]
    assert [len(list(response)) for _, response in responses] == [1, 1, 1]
    assert {status for status, _ in responses} == {"200 OK"}
    for _, response in responses:
        response.close()


@pytest.mark.django_db
def test_a_stream_ends_soon_after_the_deadline(settings, monkeypatch):
    settings.DRAMATIS_REQUEST_SECONDS = -10
    application = streaming_application(2 * MAX_BUFFERED_BYTES, [])
    _, response = call(application)
    with pytest.raises(RequestTimeout):
        list(response)
    response.close()
    with suppress(RequestTimeout):
        check_request_deadline()
        return
    pytest.fail("The deadline of the request outlived it.")
