"""The time of the database server, which all processes share."""

from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import connection
from django.utils import timezone

log = structlog.get_logger(__name__)


class DatabaseClock:
    """The clock of this process with a correction, so that it agrees with the clock of the database.

    The correction is zero until a statement has found that the clocks differ and `correct` is called. So the
    time costs no query. SQLite has the clock of the process and needs no correction.
    """

    def __init__(self) -> None:
        self._correction = timedelta()

    def now(self) -> datetime:
        return timezone.now() + self._correction

    def correct(self, max_skew: timedelta) -> bool:
        """Compare the clocks. Correct a difference over half of `max_skew`; return whether there was one."""
        if not max_skew or connection.vendor != "postgresql":
            return False
        error = read_database_time() - self.now()
        if abs(error) <= max_skew / 2:
            return False
        self._correction += error
        log.warning("clock_corrected", seconds=round(self._correction.total_seconds(), 1))
        return True


def read_database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row: tuple[Any, ...] = cursor.fetchone()
    at: datetime = row[0]
    return at


PROCESS_CLOCK = DatabaseClock()
