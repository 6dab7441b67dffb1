"""Reads that may be some seconds behind: asked of a copy of the database, or of itself if there is none."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
)
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

log = structlog.get_logger(__name__)
T = TypeVar("T")

REPLICA = "replica"
# Further behind than this it is not asked; how often it is looked at; how long one that failed is left alone.
MOST_BEHIND, LOOK, PAUSE = timedelta(seconds=10), 5.0, 30.0
# More than the two first together: whoever wrote something is not shown a copy from before that.
FRESH_SECONDS = 20
COOKIE = "dr_just_wrote"
SAFE = ("GET", "HEAD", "OPTIONS")
# Away, too slow, behind in its tables, or not ours to read; nothing that the database itself would say too.
FAILURES = (OperationalError, InterfaceError, ProgrammingError)
CHUNK = 500
HERE = "SELECT pg_current_wal_lsn()::text, clock_timestamp()"
THERE = """
    SELECT pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false),
           pg_last_xact_replay_timestamp()
"""


def read_aside(question: Callable[[str], T], *, fresh: bool = False) -> T:
    """The answer of the copy; of the database where it must be fresh, and whenever the copy fails.

    The question is told the alias to use and reads at once: later, nobody would ask elsewhere.
    """
    alias = DEFAULT_DB_ALIAS if fresh else COPY.alias()
    if alias == DEFAULT_DB_ALIAS:
        return question(alias)
    try:
        return question(alias)
    except FAILURES as error:
        COPY.leave(type(error).__name__)
        return question(DEFAULT_DB_ALIAS)


def rows_aside(rows: QuerySet[Any], *, fresh: bool = False) -> Iterable[Any]:
    """Rows for a file, read as it is written; the first is read now, while it can still be had elsewhere."""
    return read_aside(lambda alias: Begun(rows.using(alias).iterator(chunk_size=CHUNK)), fresh=fresh)


class Begun(Iterator[T]):
    """Rows of which the first is read already; closing them ends the reading."""

    def __init__(self, rows: Iterator[T]) -> None:
        self._rows = rows
        self._all = chain(list(islice(rows, 1)), rows)

    def __next__(self) -> T:
        return next(self._all)

    def close(self) -> None:
        if close := getattr(self._rows, "close", None):
            close()


class Copy:
    """What this process knows of the copy: whether to ask it, and when to look at it again."""

    def __init__(self) -> None:
        self.is_away, self.next_look = False, 0.0

    def alias(self) -> str:
        if REPLICA not in connections.databases:
            return DEFAULT_DB_ALIAS
        now = time.monotonic()
        if now >= self.next_look:
            # Before the look, so that of many threads one waits for it.
            self.next_look = now + LOOK
            self.look()
        return DEFAULT_DB_ALIAS if self.is_away else REPLICA

    def look(self) -> None:
        try:
            behind = time_behind()
        except FAILURES as error:
            self.leave(type(error).__name__)
        else:
            if behind > MOST_BEHIND:
                self.leave(f"{behind.total_seconds():.0f} s behind")
            else:
                self.is_away = False

    def leave(self, reason: str) -> None:
        """For a while everything is asked of the database itself."""
        self.is_away, self.next_look = True, time.monotonic() + PAUSE
        log.warning("replica_left_alone", reason=reason, seconds=PAUSE)
        with suppress(Error):
            connections[REPLICA].close()


COPY = Copy()


def time_behind() -> timedelta:
    """Nought when the copy has all that the database had a moment ago."""
    with connection.cursor() as cursor:
        cursor.execute(HERE)
        position, now = cursor.fetchone()
    is_copy, has_all, last_at = standing(position)
    if has_all or not is_copy:
        return timedelta(0)
    return now - last_at if last_at else timedelta.max


def standing(position: str) -> tuple[bool, bool, datetime | None]:
    """Whether it is a copy at all, whether it has come as far as this, and of when its last change is."""
    with connections[REPLICA].cursor() as cursor:
        cursor.execute(THERE, [position])
        is_copy, has_all, last_at = cursor.fetchone()
    return is_copy, has_all, last_at


# --- what a person just wrote --------------------------------------------------------------------------


def just_wrote(request: HttpRequest) -> bool:
    return COOKIE in request.COOKIES


class JustWroteMiddleware:
    """Marks the browser of whoever wrote something, for as long as a copy may be without it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if REPLICA not in connections.databases:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        # Programs with a key have no session, and their lists are never read aside.
        if request.method not in SAFE and settings.SESSION_COOKIE_NAME in request.COOKIES:
            answer.set_cookie(
                COOKIE,
                "1",
                max_age=FRESH_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return answer
