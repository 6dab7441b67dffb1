"""Makes the tables of the months to come before they are needed, and drops those that are over and empty."""

from collections.abc import Iterable
from datetime import datetime

import structlog
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from prompts.ledger_tables import (
    DEFAULT,
    LEDGER,
    ROW_GUARD,
    Part,
    answers,
    has_rows,
    is_by_month,
    later,
    ledger_parts,
    month_of,
    part_of,
    statements_making,
)

log = structlog.get_logger(__name__)

# This month and so many more.
AHEAD = 2
# Of those whose rows lie where no month was made: so many at a time.
MOST_MONTHS = 36
# As many rows are moved in a moment; more of a month in use wait until it is over.
FEW_ROWS = 5_000
# Everybody queues behind a lock that is waited for; what does not come at once is tried again next time.
PATIENCE = "SET LOCAL lock_timeout = '500ms'"
NO_LIMIT = "SET LOCAL statement_timeout = 0"
# One at a time makes or drops; whoever reads or writes rows does not notice.
ONE_AT_A_TIME = f"LOCK TABLE ONLY {LEDGER} IN SHARE UPDATE EXCLUSIVE MODE"
LOST = f"""
SELECT DISTINCT date_trunc('month', at, 'UTC') FROM {DEFAULT} ORDER BY 1 LIMIT {MOST_MONTHS}
"""  # noqa: S608  # our own name
WITHIN = "at >= '{part.since}' AND at < '{part.until}'"


def make_months(now: datetime | None = None) -> list[str]:
    """The tables that were missing: of this month and the next, and of rows that no month was made for."""
    if not is_by_month():
        return []
    now = now or timezone.now()
    ahead = [later(month_of(now), number) for number in range(AHEAD + 1)]
    lost = [month_of(month) for (month,) in answers(LOST)]
    parts = ledger_parts()
    missing = [
        month for month in dict.fromkeys([*ahead, *lost]) if not any(part.holds(month) for part in parts)
    ]
    made = [name for month in missing if (name := tried(month, now))]
    if made:
        count_rows()
    return made


def tried(month: datetime, now: datetime) -> str | None:
    """A month that cannot be made now keeps no other from being made, and its rows find their place."""
    try:
        return make_month(month, now)
    except DatabaseError:
        log.exception("ledger_month_not_made", month=f"{month:%Y-%m}")
        return None


@transaction.atomic
def make_month(month: datetime, now: datetime) -> str | None:
    run([PATIENCE, NO_LIMIT, ONE_AT_A_TIME])
    part = part_of(month)
    if any(there.holds(month) for there in ledger_parts()):
        return None
    if part.holds(now) and is_full_of(part):
        # Whoever writes a row of this month would wait until all of them are moved.
        log.warning("ledger_month_waits_until_it_is_over", month=f"{month:%Y-%m}")
        return None
    run(statements_making(part, moving_to(part)))
    log.info("ledger_month_made", table=part.name)
    return part.name


def is_full_of(part: Part) -> bool:
    found = f"SELECT 1 FROM {DEFAULT} WHERE {WITHIN.format(part=part)} LIMIT {FEW_ROWS + 1}"  # noqa: S608  # ours
    return len(answers(found)) > FEW_ROWS


def moving_to(part: Part) -> list[str]:
    """Rows of the month leave the default, which may hold none of them once the month is there.

    They stay what they are. Their guard is aside in this transaction only, and nobody else writes meanwhile.
    """
    if not has_rows(DEFAULT):
        return []
    moved = f"DELETE FROM {DEFAULT} WHERE {WITHIN.format(part=part)} RETURNING *"  # noqa: S608  # ours
    return [
        f"ALTER TABLE {DEFAULT} DISABLE TRIGGER {ROW_GUARD}",
        f"WITH moved AS ({moved}) INSERT INTO {part.name} SELECT * FROM moved ORDER BY id",  # noqa: S608  # ours
        f"ALTER TABLE {DEFAULT} ENABLE TRIGGER {ROW_GUARD}",
    ]


@transaction.atomic
def count_rows() -> None:
    """The database counts the rows of a part by itself, those of the whole only when told to."""
    run([NO_LIMIT, f"ANALYZE {LEDGER}"])


# --- letting go ----------------------------------------------------------------------------------------


def drop_empty_months(now: datetime | None = None) -> list[str]:
    """Months that ended a month ago or earlier and have no row; retention lets rows go by whole blocks."""
    if not is_by_month():
        return []
    limit = later(month_of(now or timezone.now()), -1)
    over = [part for part in ledger_parts() if part.until is not None and part.until <= limit]
    return [part.name for part in over if not has_rows(part.name) and is_dropped(part)]


def is_dropped(part: Part) -> bool:
    try:
        return drop_if_empty(part)
    except DatabaseError:
        log.exception("ledger_month_not_dropped", table=part.name)
        return False


@transaction.atomic
def drop_if_empty(part: Part) -> bool:
    """Looked at again under the lock: a late row may have come."""
    run([PATIENCE, f"LOCK TABLE ONLY {LEDGER}, {part.name} IN ACCESS EXCLUSIVE MODE"])
    if has_rows(part.name):
        return False
    run([f"DROP TABLE {part.name}"])
    log.info("ledger_month_dropped", table=part.name)
    return True


# --- putting back --------------------------------------------------------------------------------------


def lay_out(parts: Iterable[Part]) -> None:
    """The months as a backup had them, in a ledger without rows."""
    run(f"DROP TABLE {part.name}" for part in ledger_parts() if not part.is_default)
    for part in parts:
        run(statements_making(part))


def run(statements: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
