"""Run queries whose results may be a few seconds old on a read replica; fall back to the primary database."""

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
# The largest accepted replication lag, how often the lag is checked, and how long the replica is not used
# after a failure.
MAX_LAG, CHECK_SECONDS, SUSPEND_SECONDS = timedelta(seconds=10), 5.0, 30.0
# For this long after a write, the user's pages are read from the primary. This is more than MAX_LAG plus
# CHECK_SECONDS, so a replica in use has replayed the write by then.
RECENT_WRITE_SECONDS = 20
RECENT_WRITE_COOKIE = "dr_just_wrote"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Errors of a replica that is down, too slow, not migrated yet or not readable. Other errors are not caught,
# because the same query would fail on the primary as well.
REPLICA_ERRORS = (OperationalError, InterfaceError, ProgrammingError)
CHUNK_SIZE = 500
PRIMARY_POSITION_SQL = "SELECT pg_current_wal_lsn()::text, clock_timestamp()"
REPLICA_STATUS_SQL = """
    SELECT pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false),
           pg_last_xact_replay_timestamp()
"""


def read_from_replica(query: Callable[[str], T], *, fresh: bool = False) -> T:
    """Run a query on the replica, or on the primary if `fresh` is set or the replica fails.

    `query` gets the database alias. It must evaluate its queryset: a lazy queryset would run after this
    function has returned, where an error of the replica is no longer caught.
    """
    alias = DEFAULT_DB_ALIAS if fresh else REPLICA_HEALTH.get_alias()
    if alias == DEFAULT_DB_ALIAS:
        return query(alias)
    try:
        return query(alias)
    except REPLICA_ERRORS as error:
        REPLICA_HEALTH.suspend(type(error).__name__)
        return query(DEFAULT_DB_ALIAS)


def iterate_replica(rows: QuerySet[Any], *, fresh: bool = False) -> Iterable[Any]:
    """Stream rows from the replica, for an export.

    The first row is read immediately: an error of the replica can be handled only before the export starts.
    """
    return read_from_replica(
        lambda alias: StartedIterator(rows.using(alias).iterator(chunk_size=CHUNK_SIZE)), fresh=fresh
    )


class StartedIterator(Iterator[T]):
    """Iterator whose first row is already read; `close` ends the underlying cursor."""

    def __init__(self, rows: Iterator[T]) -> None:
        self._rows = rows
        self._all = chain(list(islice(rows, 1)), rows)

    def __next__(self) -> T:
        return next(self._all)

    def close(self) -> None:
        if close := getattr(self._rows, "close", None):
            close()


class ReplicaHealth:
    """Whether this process currently uses the replica, and when it checks the replica again."""

    def __init__(self) -> None:
        self.is_suspended, self.next_check = False, 0.0

    def get_alias(self) -> str:
        if REPLICA_ALIAS not in connections.databases:
            return DEFAULT_DB_ALIAS
        now = time.monotonic()
        if now >= self.next_check:
            # Set before the check runs, so that other threads do not check at the same time.
            self.next_check = now + CHECK_SECONDS
            self.check()
        return DEFAULT_DB_ALIAS if self.is_suspended else REPLICA_ALIAS

    def check(self) -> None:
        try:
            lag = get_replica_lag()
        except REPLICA_ERRORS as error:
            self.suspend(type(error).__name__)
        else:
            if lag > MAX_LAG:
                self.suspend(f"lag of {lag.total_seconds():.0f} s")
            else:
                self.is_suspended = False

    def suspend(self, reason: str) -> None:
        """Use the primary for everything during the next SUSPEND_SECONDS."""
        self.is_suspended, self.next_check = True, time.monotonic() + SUSPEND_SECONDS
        log.warning("replica_suspended", reason=reason, seconds=SUSPEND_SECONDS)
        with suppress(Error):
            connections[REPLICA_ALIAS].close()


REPLICA_HEALTH = ReplicaHealth()


def get_replica_lag() -> timedelta:
    """Return the replication lag, which is zero if the replica has replayed all WAL of the primary.

    Otherwise it is the age of the last transaction that the replica has replayed.
    """
    with connection.cursor() as cursor:
        cursor.execute(PRIMARY_POSITION_SQL)
        position, now = cursor.fetchone()
    is_standby, is_caught_up, replayed_at = get_replica_status(position)
    if is_caught_up or not is_standby:
        return timedelta(0)
    return now - replayed_at if replayed_at else timedelta.max


def get_replica_status(position: str) -> tuple[bool, bool, datetime | None]:
    """Return the state of the replica.

    The result is whether the server is a standby, whether it has replayed the WAL up to `position`, and the
    commit time of the last transaction that it has replayed.
    """
    with connections[REPLICA_ALIAS].cursor() as cursor:
        cursor.execute(REPLICA_STATUS_SQL, [position])
        is_standby, is_caught_up, replayed_at = cursor.fetchone()
    return is_standby, is_caught_up, replayed_at


# --- read your own writes ------------------------------------------------------------------------------


def has_recent_write(request: HttpRequest) -> bool:
    return RECENT_WRITE_COOKIE in request.COOKIES


class ReadYourWritesMiddleware:
    """Set a cookie after a write, so that pages are read from the primary until the replica has caught up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if REPLICA_ALIAS not in connections.databases:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # Only for browsers: API clients have no session, and the API does not read from the replica.
        if request.method not in SAFE_METHODS and settings.SESSION_COOKIE_NAME in request.COOKIES:
            response.set_cookie(
                RECENT_WRITE_COOKIE,
                "1",
                max_age=RECENT_WRITE_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response
