"""Deadline of each request: a watchdog cancels its database statement, and no further one is started."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread, get_ident
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from core.request_body import LimitedBody
from core.request_deadline import (
    RequestTimeout,
    check_request_deadline,
    is_past_deadline,
    set_request_deadline,
)

log = structlog.get_logger(__name__)

CHECK_SECONDS = 0.5
CANCEL_TIMEOUT = 2.0


@dataclass(eq=False)
class ActiveRequest:
    """A request that a thread handles, with the database connections of the thread."""

    path: str
    body: LimitedBody
    started_at: float
    connections: tuple[BaseDatabaseWrapper, ...]
    # Whether the response is being sent in parts, which takes as long as the client takes to read it.
    is_streaming: bool = False
    is_reported: bool = False

    @property
    def deadline(self) -> float:
        return self.started_at + float(settings.DRAMATIS_REQUEST_SECONDS)

    @property
    def is_waiting_for_client(self) -> bool:
        return self.is_streaming or self.body.is_reading


class RequestDeadlines:
    """The requests of this process, by thread."""

    def __init__(self) -> None:
        self._active: dict[int, ActiveRequest] = {}
        # Held while a statement is cancelled. A request that ends in the meantime waits for the lock, so that
        # its connection does not pass to another request, whose statement would be cancelled.
        self._lock = Lock()

    def begin(self, path: str, body: LimitedBody) -> ActiveRequest:
        wrappers = tuple(connections.all())
        for wrapper in wrappers:
            if refuse_after_deadline not in wrapper.execute_wrappers:
                wrapper.execute_wrappers.append(refuse_after_deadline)
        request = ActiveRequest(path, body, time.monotonic(), wrappers)
        self._active[get_ident()] = request
        set_request_deadline(request.deadline)
        return request

    def end(self) -> None:
        set_request_deadline(None)
        with self._lock:
            self._active.pop(get_ident(), None)

    def cancel_expired(self) -> None:
        """Cancel the running statement of each request after its deadline; again until the request ends."""
        now = time.monotonic()
        for thread, request in list(self._active.items()):
            if now < request.deadline or request.body.is_reading:
                continue
            with self._lock:
                if self._active.get(thread) is request:
                    cancel_statements(request)

    def has_slow_request(self, seconds: float) -> bool:
        """Return whether a request is older than this and not waiting for its client."""
        oldest = time.monotonic() - seconds
        return any(
            request.started_at < oldest and not request.is_waiting_for_client
            for request in list(self._active.values())
        )


def cancel_statements(request: ActiveRequest) -> None:
    if not request.is_reported:
        request.is_reported = True
        log.warning("request_timeout", path=request.path, seconds=settings.DRAMATIS_REQUEST_SECONDS)
    for wrapper in request.connections:
        raw = wrapper.connection
        with suppress(psycopg.Error, sqlite3.Error):
            if isinstance(raw, psycopg.Connection):
                raw.cancel_safe(timeout=CANCEL_TIMEOUT)
            elif isinstance(raw, sqlite3.Connection):
                raw.interrupt()


def refuse_after_deadline(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Execute wrapper of Django: raise RequestTimeout instead of starting a statement after the deadline."""
    check_request_deadline()
    try:
        return execute(sql, params, many, context)
    except OperationalError as error:
        if is_past_deadline():
            raise RequestTimeout("The request timed out.") from error
        raise


deadlines = RequestDeadlines()


def start_watchdog() -> Thread:
    def cancel() -> None:
        deadlines.cancel_expired()

    return start_periodic_thread("request-watchdog", cancel, CHECK_SECONDS)


def start_periodic_thread(name: str, work: Callable[[], None], seconds: float) -> Thread:
    """Start a thread that does the work again and again. An error is logged and does not end the thread."""

    def watch() -> None:
        while True:
            time.sleep(seconds)
            try:
                work()
            except Exception:
                log.exception("periodic_thread_failed", thread=name)

    thread = Thread(target=watch, name=name, daemon=True)
    thread.start()
    return thread
