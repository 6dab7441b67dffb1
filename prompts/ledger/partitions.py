"""Makes the tables of the months to come before they are needed, and drops those that are over and empty."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

LEDGER = "prompts_ledgerentry"
# What no month was made for; and what was there before there were months.
DEFAULT, BEFORE = f"{LEDGER}_default", f"{LEDGER}_before"
ROW_GUARD, EMPTYING_GUARD = f"{LEDGER}_only_grows", f"{LEDGER}_not_emptied"

# Read back in the words of the same session, so that its settings for dates do not matter.
PARTS = r"""
SELECT name, bound = 'DEFAULT',
       substring(bound FROM 'FROM \(''([^'']+)''\)')::timestamptz,
       substring(bound FROM 'TO \(''([^'']+)''\)')::timestamptz
FROM (
  SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = to_regclass(%s)
) part ORDER BY name
"""
# Whether rows can be read by whom they do not concern, or changed, or all of them thrown away.
# Of the bits of tgtype: for each row 1, before 2, on delete 8, on update 16, on truncate 32.
UNGUARDED = """
SELECT c.relname FROM pg_class c
WHERE (c.oid = to_regclass(%(ledger)s)
  OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(%(ledger)s)))
AND (c.relispartition AND NOT c.relrowsecurity OR 2 > (
  SELECT count(*) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE t.tgrelid = c.oid AND t.tgenabled IN ('O', 'A') AND t.tgqual IS NULL AND (
    (t.tgtype & 27 = 27 AND p.proname = 'refuse_rewriting_unless_rolled_off')
    OR (t.tgtype & 35 = 34 AND p.proname = 'refuse_rewriting'))))
ORDER BY c.relname
"""


@dataclass(frozen=True)
class Part:
    """A table of the ledger: all rows from `since` on, and before `until`."""

    name: str
    is_default: bool = False
    since: datetime | None = None
    until: datetime | None = None

    def holds(self, at: datetime) -> bool:
        after = self.since is None or self.since <= at
        return not self.is_default and after and (self.until is None or at < self.until)


def is_by_month() -> bool:
    """Whether there are months at all."""
    return connection.vendor == "postgresql" and bool(
        answers("SELECT 1 FROM pg_class WHERE oid = to_regclass(%s) AND relkind = 'p'", [LEDGER])
    )


def ledger_parts() -> list[Part]:
    return [Part(*row) for row in answers(PARTS, [LEDGER])]


def unguarded_parts() -> list[str]:
    """Tables of the ledger that do not refuse what all of them should."""
    return [name for (name,) in answers(UNGUARDED, {"ledger": LEDGER})]


def has_rows(part: Part) -> bool:
    return bool(answers("SELECT is_ledger_part_filled(%s)", [part.name])[0][0])


def answers(question: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(question, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


# --- months --------------------------------------------------------------------------------------------


def month_of(at: datetime) -> datetime:
    """Its first moment; months are those of UTC."""
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def later(month: datetime, months: int = 1) -> datetime:
    years, place = divmod(month.year * 12 + month.month - 1 + months, 12)
    return month.replace(year=years, month=place + 1)


def part_of(month: datetime) -> Part:
    return Part(f"{LEDGER}_{month:%Y_%m}", since=month, until=later(month))


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
