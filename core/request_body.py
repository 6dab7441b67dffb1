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

# How long a read waits for a free slot.
SLOT_WAIT_SECONDS = 0.25
# By how many seconds a timeout may be off: the thread that closes connections checks once a second.
TIMEOUT_TOLERANCE = 2.0


class BodyReadError(BadRequest):
    """The request body was not read. A subclass of BadRequest, so Django does not log a server error."""

    status = 400
    code = "bad_request"
    detail = "The connection was closed before the body was complete."
    headers: dict[str, str] = {}


class BodyReadTimeout(BodyReadError):
    status = 408
    code = "body_timeout"
    detail = "The body did not arrive in time. Send it again."


class TooManyBodyReads(BodyReadError):
    status = 503
    code = "unavailable"
    detail = "Too many uploads are in progress. Try again."
    headers = {"Retry-After": "2"}


class ClientSlots:
    """Counts the threads that wait for a client: for its request body, or until it reads a streamed response.

    Emails have slots of their own, with another limit (core/outgoing/email_backend.py).
    Requests that are not authenticated and streamed responses may each use a quarter of the slots. If all
    slots are taken by bodies that arrive fast, a further one waits a moment. If they are taken by stalled
    ones, none was taken or released recently, and a further one is refused at once.
    """

    def __init__(self, get_limit: Callable[[], int] = lambda: settings.DRAMATIS_BODY_THREADS) -> None:
        self._get_limit = get_limit
        self._changed = Condition()
        self._taken = self._taken_by_few = 0
        # When a slot was last taken or released, by `is_few`.
        self._changed_at = {True: 0.0, False: 0.0}

    def acquire(self, *, is_few: bool) -> bool:
        """Take a slot, of the quarter for requests without authentication and streams if `is_few`."""
        with self._changed:
            if not self._is_free(is_few):
                if time.monotonic() - self._changed_at[is_few] > SLOT_WAIT_SECONDS:
                    return False
                if not self._changed.wait_for(lambda: self._is_free(is_few), SLOT_WAIT_SECONDS):
                    return False
            self._taken += 1
            self._taken_by_few += is_few
            self._changed_at[is_few] = time.monotonic()
            return True

    def release(self, *, is_few: bool) -> None:
        with self._changed:
            self._taken -= 1
            self._taken_by_few -= is_few
            self._changed_at[is_few] = time.monotonic()
            self._changed.notify_all()

    def _is_free(self, is_few: bool) -> bool:
        limit = self._get_limit()
        return self._taken < limit and (not is_few or self._taken_by_few < max(limit // 4, 1))


slots = ClientSlots()


class LimitedBody:
    """The `wsgi.input` of a request, with the limits of this module.

    Fewer bytes than announced are an error: the web server reports a lost connection as the end of the
    body, and part of a form must not be processed as if it were the form. A body without Content-Length
    announces nothing: it is read up to the size that Django asks for. Part of a JSON object is no JSON.
    """

    def __init__(self, stream: Any, *, has_length: bool = True) -> None:
        self._stream, self.has_length = stream, has_length
        self._started_at = 0.0
        self.is_authenticated = False
        self.is_reading = False
        self.error: BodyReadError | None = None

    def read(self, size: int) -> bytes:
        data = self._run(lambda: self._stream.read(size))
        if len(data) < size and (self.has_length or self._is_late()):
            self._fail(self._find_reason())
        return data

    def close(self) -> None:
        """Do nothing: the connection belongs to the web server. Django closes a stream that it has read."""

    def readline(self, size: int = -1) -> bytes:
        return self._run(lambda: self._stream.readline(size))

    def _run(self, read: Callable[[], bytes]) -> bytes:
        if self.error is not None:
            raise self.error
        self._started_at = self._started_at or time.monotonic()
        is_few = not self.is_authenticated
        if not slots.acquire(is_few=is_few):
            self._fail(TooManyBodyReads())
        self.is_reading = True
        try:
            data = bytes(read())
        finally:
            self.is_reading = False
            slots.release(is_few=is_few)
        if time.monotonic() - self._started_at > settings.DRAMATIS_BODY_SECONDS + TIMEOUT_TOLERANCE:
            self._fail(BodyReadTimeout())
        return data

    def _find_reason(self) -> BodyReadError:
        return BodyReadTimeout() if self._is_late() else BodyReadError()

    def _is_late(self) -> bool:
        """Whether the read took so long that the connection was probably closed."""
        seconds = time.monotonic() - self._started_at
        return seconds >= settings.DRAMATIS_BODY_SECONDS - TIMEOUT_TOLERANCE

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
