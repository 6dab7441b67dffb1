"""Makes the tables of the months to come before they are needed, and drops those that are over and empty."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

LEDGER_TABLE = "prompts_ledgerentry"
# What no month was made for; and what was there before there were months.
DEFAULT_PARTITION, LEGACY_PARTITION = f"{LEDGER_TABLE}_default", f"{LEDGER_TABLE}_before"
APPEND_ONLY_TRIGGER, TRUNCATE_TRIGGER = f"{LEDGER_TABLE}_only_grows", f"{LEDGER_TABLE}_not_emptied"

# Read back in the words of the same session, so that its settings for dates do not matter.
PARTITIONS_SQL = r"""
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
UNPROTECTED_PARTITIONS_SQL = """
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
class LedgerPartition:
    """A table of the ledger: all rows from `since` on, and before `until`."""

    name: str
    is_default: bool = False
    since: datetime | None = None
    until: datetime | None = None

    def holds(self, at: datetime) -> bool:
        after = self.since is None or self.since <= at
        return not self.is_default and after and (self.until is None or at < self.until)


def is_ledger_partitioned() -> bool:
    """Whether there are months at all."""
    return connection.vendor == "postgresql" and bool(
        query_rows("SELECT 1 FROM pg_class WHERE oid = to_regclass(%s) AND relkind = 'p'", [LEDGER_TABLE])
    )


def list_partitions() -> list[LedgerPartition]:
    return [LedgerPartition(*row) for row in query_rows(PARTITIONS_SQL, [LEDGER_TABLE])]


def list_unprotected_partitions() -> list[str]:
    """Tables of the ledger that do not refuse what all of them should."""
    return [name for (name,) in query_rows(UNPROTECTED_PARTITIONS_SQL, {"ledger": LEDGER_TABLE})]


def has_partition_rows(part: LedgerPartition) -> bool:
    return bool(query_rows("SELECT is_ledger_part_filled(%s)", [part.name])[0][0])


def query_rows(question: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(question, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


# --- months --------------------------------------------------------------------------------------------


def get_month_start(at: datetime) -> datetime:
    """Its first moment; months are those of UTC."""
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def add_months(month: datetime, months: int = 1) -> datetime:
    years, place = divmod(month.year * 12 + month.month - 1 + months, 12)
    return month.replace(year=years, month=place + 1)


def build_month_partition(month: datetime) -> LedgerPartition:
    return LedgerPartition(f"{LEDGER_TABLE}_{month:%Y_%m}", since=month, until=add_months(month))


log = structlog.get_logger(__name__)

# This month and so many more.
MONTHS_AHEAD = 2
# Of those whose rows lie where no month was made: so many at a time.
MAX_BACKFILL_MONTHS = 36
# As many rows are moved in a moment; more of a month in use wait until it is over, for whoever writes a row
# of it waits meanwhile.
MAX_MOVED_ROWS = 5_000
# Everybody queues behind a lock that is waited for; what does not come at once is tried again next time.
LOCK_TIMEOUT_SQL = "SET LOCAL lock_timeout = '500ms'"
NO_STATEMENT_TIMEOUT_SQL = "SET LOCAL statement_timeout = 0"


def create_partitions(now: datetime | None = None) -> list[str]:
    """The tables that were missing: of this month and the next, and of rows that no month was made for."""
    if not is_ledger_partitioned():
        return []
    now = now or timezone.now()
    ahead = [add_months(get_month_start(now), number) for number in range(MONTHS_AHEAD + 1)]
    parts = list_partitions()
    missing = [
        month
        for month in dict.fromkeys([*ahead, *list_unpartitioned_months()])
        if not any(part.holds(month) for part in parts)
    ]
    made = [build_month_partition(month).name for month in missing if try_create_partition(month, now)]
    if made:
        run_partition_function("SELECT count_ledger_rows()")
    return made


def list_unpartitioned_months() -> list[datetime]:
    """Of rows that lie in no month's table."""
    return [
        get_month_start(month)
        for (month,) in query_rows("SELECT lost_ledger_months(%s)", [MAX_BACKFILL_MONTHS])
    ]


def try_create_partition(month: datetime, now: datetime) -> bool:
    """A month that cannot be made now keeps no other from being made, and its rows find their place."""
    try:
        made = create_month_partition(month, now)
    except DatabaseError:
        log.exception("ledger_partition_creation_failed", month=f"{month:%Y-%m}")
        return False
    log.info("ledger_partition_created" if made else "ledger_partition_deferred", month=f"{month:%Y-%m}")
    return made


def create_month_partition(month: datetime, now: datetime) -> bool:
    few = MAX_MOVED_ROWS if build_month_partition(month).holds(now) else None
    return run_partition_function("SELECT make_ledger_month(%s, %s)", month, few)


def drop_empty_partitions(now: datetime | None = None) -> list[str]:
    """Months that ended a month ago or earlier and have no row; retention lets rows go by whole blocks."""
    if not is_ledger_partitioned():
        return []
    limit = add_months(get_month_start(now or timezone.now()), -1)
    over = [part for part in list_partitions() if part.until is not None and part.until <= limit]
    return [part.name for part in over if not has_partition_rows(part) and try_drop_partition(part)]


def try_drop_partition(part: LedgerPartition) -> bool:
    try:
        dropped = drop_partition_if_empty(part)
    except DatabaseError:
        log.exception("ledger_partition_drop_failed", table=part.name)
        return False
    log.info("ledger_partition_dropped" if dropped else "ledger_partition_kept", table=part.name)
    return dropped


def drop_partition_if_empty(part: LedgerPartition) -> bool:
    return run_partition_function("SELECT drop_ledger_part(%s)", part.name)


def restore_partitions(parts: Iterable[LedgerPartition]) -> None:
    """The months as a backup had them, in a ledger without rows; whoever restores owns the tables."""
    with connection.cursor() as cursor:
        for part in list_partitions():
            if not part.is_default:
                cursor.execute(f"DROP TABLE {part.name}")
        for part in parts:
            cursor.execute("SELECT make_ledger_part(%s, %s, %s)", [part.name, part.since, part.until])


@transaction.atomic
def run_partition_function(question: str, *values: Any) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(LOCK_TIMEOUT_SQL)
        cursor.execute(NO_STATEMENT_TIMEOUT_SQL)
        cursor.execute(question, values)
        return bool(cursor.fetchone()[0])
