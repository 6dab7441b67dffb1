"""The copy for reads that may lag: reached, truly a copy, and how far behind."""

from collections.abc import Iterator
from datetime import timedelta

from django.db import connection, connections

from core.db.replica import FAILURES, HERE, MOST_BEHIND, REPLICA, standing, time_behind
from project.doctor.results import Finding, ok, warn

NAME = "replica"


def look_at_replica() -> Iterator[Finding]:
    """Nothing where none is set; never a failure, since pages are read from the database meanwhile."""
    if REPLICA not in connections.databases:
        return
    try:
        yield how_it_stands()
    except FAILURES as error:
        yield warn(
            NAME,
            f"It does not answer ({type(error).__name__}).",
            "Start it, or mend DATABASE_REPLICA_URL; until then the database is asked for everything.",
        )


def how_it_stands() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(HERE)
        position, _ = cursor.fetchone()
    if not standing(position)[0]:
        return warn(
            NAME,
            "It is no copy: it takes writes itself.",
            "Point DATABASE_REPLICA_URL at a standby of DATABASE_URL's server.",
        )
    behind = time_behind()
    is_empty = behind == timedelta.max
    words = "It has taken nothing over yet." if is_empty else f"It is {behind.total_seconds():.0f} s behind."
    if behind > MOST_BEHIND:
        return warn(NAME, words, "Look at its log and its disk; until then it is not asked.")
    return ok(NAME, words)
