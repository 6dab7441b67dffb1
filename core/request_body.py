"""Limits on reading request bodies: how many threads read at once, and how long one body may take.

The web server reads a body while the application asks for it, so a client that stops sending blocks a
thread. The read itself has no timeout: project/request_limits/connections.py closes the connection of a body
that takes too long, and the read then returns too few bytes.
"""

import time
from collections.abc import Callable
from threading import Condition
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest

# How long a read waits for a free slot, in seconds, and how many threads may wait at once. A body that has
# already arrived is read in less than a millisecond, so a short wait avoids needless 503 responses.
SLOT_WAIT_SECONDS = 0.25
# The connection is closed by a thread that checks once a second.
TIMEOUT_TOLERANCE = 2.0


class BodyReadError(BadRequest):
    """The request body was not read. A subclass of BadRequest, so Django does not log a server error."""

    status = 400
    code = "bad_request"
    detail = "The connection ended before the body was complete."
    headers: dict[str, str] = {}


class BodyReadTimeout(BodyReadError):
    status = 408
    code = "body_timeout"
    detail = "The body did not arrive in time. Send it again."


class TooManyBodyReads(BodyReadError):
    status = 503
    code = "unavailable"
    detail = "Too many requests are being received at the moment. Try again."
    headers = {"Retry-After": "2"}


class BodyReadSlots:
    """Counts the threads that read a body, with lower limits for requests that are not authenticated."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._reading = self._anonymous = self._waiting = 0

    def acquire(self, *, is_authenticated: bool) -> bool:
        """Take a slot, waiting a moment if all are taken. Return False if none became free."""
        with self._changed:
            if not self._is_free(is_authenticated):
                if self._waiting >= max(settings.DRAMATIS_BODY_THREADS // 2, 1):
                    return False
                self._waiting += 1
                try:
                    self._changed.wait_for(lambda: self._is_free(is_authenticated), SLOT_WAIT_SECONDS)
                finally:
                    self._waiting -= 1
                if not self._is_free(is_authenticated):
                    return False
            self._reading += 1
            self._anonymous += not is_authenticated
            return True

    def release(self, *, is_authenticated: bool) -> None:
        with self._changed:
            self._reading -= 1
            self._anonymous -= not is_authenticated
            self._changed.notify_all()

    def _is_free(self, is_authenticated: bool) -> bool:
        limit: int = settings.DRAMATIS_BODY_THREADS
        return self._reading < limit and (is_authenticated or self._anonymous < max(limit // 3, 1))


slots = BodyReadSlots()


class LimitedBody:
    """The `wsgi.input` of a request, with the limits of this module.

    Fewer bytes than announced are an error: the web server reports a lost connection as the end of the
    body, and part of a form must not be processed as if it were the form.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._started_at = 0.0
        self.is_authenticated = False
        self.is_reading = False
        self.error: BodyReadError | None = None

    def read(self, size: int) -> bytes:
        data = self._run(lambda: self._stream.read(size))
        if len(data) < size:
            self._fail(self._find_reason())
        return data

    def readline(self, size: int = -1) -> bytes:
        return self._run(lambda: self._stream.readline(size))

    def _run(self, read: Callable[[], bytes]) -> bytes:
        if self.error is not None:
            raise self.error
        self._started_at = self._started_at or time.monotonic()
        is_authenticated = self.is_authenticated
        if not slots.acquire(is_authenticated=is_authenticated):
            self._fail(TooManyBodyReads())
        self.is_reading = True
        try:
            data = bytes(read())
        finally:
            self.is_reading = False
            slots.release(is_authenticated=is_authenticated)
        if time.monotonic() - self._started_at > settings.DRAMATIS_BODY_SECONDS + TIMEOUT_TOLERANCE:
            self._fail(BodyReadTimeout())
        return data

    def _find_reason(self) -> BodyReadError:
        seconds = time.monotonic() - self._started_at
        is_late = seconds >= settings.DRAMATIS_BODY_SECONDS - TIMEOUT_TOLERANCE
        return BodyReadTimeout() if is_late else BodyReadError()

    def _fail(self, error: BodyReadError) -> None:
        self.error = error
        raise error


def get_limited_body(request: HttpRequest) -> LimitedBody | None:
    """Return the body of a request from the web server; None for a request of Django's test client."""
    body = request.META.get("wsgi.input")
    return body if isinstance(body, LimitedBody) else None


def mark_body_authenticated(request: HttpRequest) -> None:
    """Let the body of an authenticated request use all slots."""
    if (body := get_limited_body(request)) is not None:
        body.is_authenticated = True
