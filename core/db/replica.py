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

REPLICA_ALIAS = "replica"
# Further behind than this it is not asked; how often it is looked at; how long one that failed is left alone.
MAX_LAG, CHECK_SECONDS, SUSPEND_SECONDS = timedelta(seconds=10), 5.0, 30.0
# More than the two first together: whoever wrote something is not shown a copy from before that.
RECENT_WRITE_SECONDS = 20
RECENT_WRITE_COOKIE = "dr_just_wrote"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Away, too slow, behind in its tables, or not ours to read; nothing that the database itself would say too.
REPLICA_ERRORS = (OperationalError, InterfaceError, ProgrammingError)
CHUNK_SIZE = 500
PRIMARY_POSITION_SQL = "SELECT pg_current_wal_lsn()::text, clock_timestamp()"
REPLICA_STATUS_SQL = """
    SELECT pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false),
           pg_last_xact_replay_timestamp()
"""


def read_from_replica(question: Callable[[str], T], *, fresh: bool = False) -> T:
    """The answer of the copy; of the database where it must be fresh, and whenever the copy fails.

    The question is told the alias to use and reads at once: later, nobody would ask elsewhere.
    """
    alias = DEFAULT_DB_ALIAS if fresh else REPLICA_HEALTH.alias()
    if alias == DEFAULT_DB_ALIAS:
        return question(alias)
    try:
        return question(alias)
    except REPLICA_ERRORS as error:
        REPLICA_HEALTH.leave(type(error).__name__)
        return question(DEFAULT_DB_ALIAS)


def iterate_replica(rows: QuerySet[Any], *, fresh: bool = False) -> Iterable[Any]:
    """Rows for a file, read as it is written; the first is read now, while it can still be had elsewhere."""
    return read_from_replica(
        lambda alias: StartedIterator(rows.using(alias).iterator(chunk_size=CHUNK_SIZE)), fresh=fresh
    )


class StartedIterator(Iterator[T]):
    """Rows of which the first is read already; closing them ends the reading."""

    def __init__(self, rows: Iterator[T]) -> None:
        self._rows = rows
        self._all = chain(list(islice(rows, 1)), rows)

    def __next__(self) -> T:
        return next(self._all)

    def close(self) -> None:
        if close := getattr(self._rows, "close", None):
            close()


class ReplicaHealth:
    """What this process knows of the copy: whether to ask it, and when to look at it again."""

    def __init__(self) -> None:
        self.is_away, self.next_look = False, 0.0

    def alias(self) -> str:
        if REPLICA_ALIAS not in connections.databases:
            return DEFAULT_DB_ALIAS
        now = time.monotonic()
        if now >= self.next_look:
            # Before the look, so that of many threads one waits for it.
            self.next_look = now + CHECK_SECONDS
            self.look()
        return DEFAULT_DB_ALIAS if self.is_away else REPLICA_ALIAS

    def look(self) -> None:
        try:
            behind = get_replica_lag()
        except REPLICA_ERRORS as error:
            self.leave(type(error).__name__)
        else:
            if behind > MAX_LAG:
                self.leave(f"{behind.total_seconds():.0f} s behind")
            else:
                self.is_away = False

    def leave(self, reason: str) -> None:
        """For a while everything is asked of the database itself."""
        self.is_away, self.next_look = True, time.monotonic() + SUSPEND_SECONDS
        log.warning("replica_suspended", reason=reason, seconds=SUSPEND_SECONDS)
        with suppress(Error):
            connections[REPLICA_ALIAS].close()


REPLICA_HEALTH = ReplicaHealth()


def get_replica_lag() -> timedelta:
    """Nought when the copy has all that the database had a moment ago."""
    with connection.cursor() as cursor:
        cursor.execute(PRIMARY_POSITION_SQL)
        position, now = cursor.fetchone()
    is_copy, has_all, last_at = get_replica_status(position)
    if has_all or not is_copy:
        return timedelta(0)
    return now - last_at if last_at else timedelta.max


def get_replica_status(position: str) -> tuple[bool, bool, datetime | None]:
    """Whether it is a copy at all, whether it has come as far as this, and of when its last change is."""
    with connections[REPLICA_ALIAS].cursor() as cursor:
        cursor.execute(REPLICA_STATUS_SQL, [position])
        is_copy, has_all, last_at = cursor.fetchone()
    return is_copy, has_all, last_at


# --- what a person just wrote --------------------------------------------------------------------------


def has_recent_write(request: HttpRequest) -> bool:
    return RECENT_WRITE_COOKIE in request.COOKIES


class ReadYourWritesMiddleware:
    """Marks the browser of whoever wrote something, for as long as a copy may be without it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if REPLICA_ALIAS not in connections.databases:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        # Programs with a key have no session, and their lists are never read aside.
        if request.method not in SAFE_METHODS and settings.SESSION_COOKIE_NAME in request.COOKIES:
            answer.set_cookie(
                RECENT_WRITE_COOKIE,
                "1",
                max_age=RECENT_WRITE_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return answer
