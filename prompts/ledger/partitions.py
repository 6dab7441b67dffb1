"""Makes the tables of the months to come before they are needed, and drops those that are over and empty."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from prompts.ledger.ledger_tables import (
    Part,
    answers,
    has_rows,
    is_by_month,
    later,
    ledger_parts,
    month_of,
    part_of,
)

log = structlog.get_logger(__name__)

# This month and so many more.
AHEAD = 2
# Of those whose rows lie where no month was made: so many at a time.
MOST_MONTHS = 36
# As many rows are moved in a moment; more of a month in use wait until it is over, for whoever writes a row
# of it waits meanwhile.
FEW_ROWS = 5_000
# Everybody queues behind a lock that is waited for; what does not come at once is tried again next time.
PATIENCE = "SET LOCAL lock_timeout = '500ms'"
NO_LIMIT = "SET LOCAL statement_timeout = 0"


def make_months(now: datetime | None = None) -> list[str]:
    """The tables that were missing: of this month and the next, and of rows that no month was made for."""
    if not is_by_month():
        return []
    now = now or timezone.now()
    ahead = [later(month_of(now), number) for number in range(AHEAD + 1)]
    parts = ledger_parts()
    missing = [
        month
        for month in dict.fromkeys([*ahead, *lost_months()])
        if not any(part.holds(month) for part in parts)
    ]
    made = [part_of(month).name for month in missing if is_made(month, now)]
    if made:
        asked("SELECT count_ledger_rows()")
    return made


def lost_months() -> list[datetime]:
    """Of rows that lie in no month's table."""
    return [month_of(month) for (month,) in answers("SELECT lost_ledger_months(%s)", [MOST_MONTHS])]


def is_made(month: datetime, now: datetime) -> bool:
    """A month that cannot be made now keeps no other from being made, and its rows find their place."""
    try:
        made = make_month(month, now)
    except DatabaseError:
        log.exception("ledger_month_not_made", month=f"{month:%Y-%m}")
        return False
    log.info("ledger_month_made" if made else "ledger_month_waits", month=f"{month:%Y-%m}")
    return made


def make_month(month: datetime, now: datetime) -> bool:
    few = FEW_ROWS if part_of(month).holds(now) else None
    return asked("SELECT make_ledger_month(%s, %s)", month, few)


def drop_empty_months(now: datetime | None = None) -> list[str]:
    """Months that ended a month ago or earlier and have no row; retention lets rows go by whole blocks."""
    if not is_by_month():
        return []
    limit = later(month_of(now or timezone.now()), -1)
    over = [part for part in ledger_parts() if part.until is not None and part.until <= limit]
    return [part.name for part in over if not has_rows(part) and is_dropped(part)]


def is_dropped(part: Part) -> bool:
    try:
        dropped = drop_if_empty(part)
    except DatabaseError:
        log.exception("ledger_month_not_dropped", table=part.name)
        return False
    log.info("ledger_month_dropped" if dropped else "ledger_month_has_a_late_row", table=part.name)
    return dropped


def drop_if_empty(part: Part) -> bool:
    return asked("SELECT drop_ledger_part(%s)", part.name)


def lay_out(parts: Iterable[Part]) -> None:
    """The months as a backup had them, in a ledger without rows; whoever restores owns the tables."""
    with connection.cursor() as cursor:
        for part in ledger_parts():
            if not part.is_default:
                cursor.execute(f"DROP TABLE {part.name}")
        for part in parts:
            cursor.execute("SELECT make_ledger_part(%s, %s, %s)", [part.name, part.since, part.until])


@transaction.atomic
def asked(question: str, *values: Any) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(PATIENCE)
        cursor.execute(NO_LIMIT)
        cursor.execute(question, values)
        return bool(cursor.fetchone()[0])
