"""Create the ledger's partitions for the coming months, and drop empty partitions of past months."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

LEDGER_TABLE = "prompts_ledgerentry"
# The default partition holds rows of months without a partition.
DEFAULT_PARTITION = f"{LEDGER_TABLE}_default"
APPEND_ONLY_TRIGGER, TRUNCATE_TRIGGER = f"{LEDGER_TABLE}_only_grows", f"{LEDGER_TABLE}_not_emptied"

# Name, whether it is the default partition, start and end of each partition. The bounds are formatted and
# parsed in the same session, so its date settings do not matter.
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
# The ledger and its partitions, if they lack one of the triggers against UPDATE, DELETE and TRUNCATE;
# for partitions, row-level security is required as well.
# Bits of tgtype: FOR EACH ROW 1, BEFORE 2, DELETE 8, UPDATE 16, TRUNCATE 32.
UNPROTECTED_PARTITIONS_SQL = """
SELECT c.relname FROM pg_class c
WHERE (c.oid = to_regclass(%(ledger)s)
  OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(%(ledger)s)))
AND (c.relispartition AND NOT c.relrowsecurity OR 2 > (
  SELECT count(*) FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE t.tgrelid = c.oid AND t.tgenabled IN ('O', 'A') AND t.tgqual IS NULL AND (
    (t.tgtype & 27 = 27 AND p.proname = 'refuse_rewriting_unless_expired')
    OR (t.tgtype & 35 = 34 AND p.proname = 'refuse_rewriting'))))
ORDER BY c.relname
"""


@dataclass(frozen=True)
class LedgerPartition:
    """A partition of the ledger: rows from `since` (inclusive) to `until` (exclusive)."""

    name: str
    is_default: bool = False
    since: datetime | None = None
    until: datetime | None = None

    def contains(self, at: datetime) -> bool:
        after = self.since is None or self.since <= at
        return not self.is_default and after and (self.until is None or at < self.until)


def is_ledger_partitioned() -> bool:
    """Whether the ledger is a partitioned table. On SQLite it never is."""
    return connection.vendor == "postgresql" and bool(
        query_rows("SELECT 1 FROM pg_class WHERE oid = to_regclass(%s) AND relkind = 'p'", [LEDGER_TABLE])
    )


def list_partitions() -> list[LedgerPartition]:
    return [LedgerPartition(*row) for row in query_rows(PARTITIONS_SQL, [LEDGER_TABLE])]


def list_unprotected_partitions() -> list[str]:
    """List the ledger tables that lack row-level security or a trigger against changes."""
    return [name for (name,) in query_rows(UNPROTECTED_PARTITIONS_SQL, {"ledger": LEDGER_TABLE})]


def has_partition_rows(partition: LedgerPartition) -> bool:
    return bool(query_rows("SELECT is_ledger_part_filled(%s)", [partition.name])[0][0])


def query_rows(sql: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


# --- months --------------------------------------------------------------------------------------------


def get_month_start(at: datetime) -> datetime:
    """Return the start of the month, in UTC."""
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def add_months(month: datetime, months: int = 1) -> datetime:
    years, month_index = divmod(month.year * 12 + month.month - 1 + months, 12)
    return month.replace(year=years, month=month_index + 1)


def build_month_partition(month: datetime) -> LedgerPartition:
    return LedgerPartition(f"{LEDGER_TABLE}_{month:%Y_%m}", since=month, until=add_months(month))


log = structlog.get_logger(__name__)

# How many months in advance partitions are created.
MONTHS_AHEAD = 2
# One run creates partitions for at most this many months that have rows in the default partition.
MAX_BACKFILL_MONTHS = 36
# Moving rows out of the default partition blocks fetches that write rows of the same month. If the current
# month has more rows there than this, they are moved only after the month is over.
MAX_MOVED_ROWS = 5_000
# While a lock request waits, later requests of other sessions queue behind it. Therefore give up early; the
# next run of the job tries again.
LOCK_TIMEOUT_SQL = "SET LOCAL lock_timeout = '500ms'"
NO_STATEMENT_TIMEOUT_SQL = "SET LOCAL statement_timeout = 0"


def create_partitions(now: datetime | None = None) -> list[str]:
    """Create the missing partitions and return their names.

    These are the partitions of this month, of the next MONTHS_AHEAD months, and of every month that has rows
    in the default partition.
    """
    if not is_ledger_partitioned():
        return []
    now = now or timezone.now()
    ahead = [add_months(get_month_start(now), number) for number in range(MONTHS_AHEAD + 1)]
    partitions = list_partitions()
    missing = [
        month
        for month in dict.fromkeys([*ahead, *list_unpartitioned_months()])
        if not any(partition.contains(month) for partition in partitions)
    ]
    created = [build_month_partition(month).name for month in missing if try_create_partition(month, now)]
    if created:
        run_partition_function("SELECT count_ledger_rows()")
    return created


def list_unpartitioned_months() -> list[datetime]:
    """List the months that have rows in the default partition, oldest first."""
    return [
        get_month_start(month)
        for (month,) in query_rows("SELECT lost_ledger_months(%s)", [MAX_BACKFILL_MONTHS])
    ]


def try_create_partition(month: datetime, now: datetime) -> bool:
    """Create the partition of a month and return whether it was created.

    A database error is only logged: without the partition, rows are stored in the default partition.
    """
    try:
        is_created = create_month_partition(month, now)
    except DatabaseError:
        log.exception("ledger_partition_creation_failed", month=f"{month:%Y-%m}")
        return False
    event = "ledger_partition_created" if is_created else "ledger_partition_deferred"
    log.info(event, month=f"{month:%Y-%m}")
    return is_created


def create_month_partition(month: datetime, now: datetime) -> bool:
    max_rows = MAX_MOVED_ROWS if build_month_partition(month).contains(now) else None
    return run_partition_function("SELECT make_ledger_month(%s, %s)", month, max_rows)


def drop_empty_partitions(now: datetime | None = None) -> list[str]:
    """Drop the empty partitions that ended at least a month ago, and return their names.

    Retention deletes rows of whole blocks, not of whole months; a partition is empty after its last block.
    """
    if not is_ledger_partitioned():
        return []
    limit = add_months(get_month_start(now or timezone.now()), -1)
    past = [
        partition
        for partition in list_partitions()
        if partition.until is not None and partition.until <= limit
    ]
    return [
        partition.name
        for partition in past
        if not has_partition_rows(partition) and try_drop_partition(partition)
    ]


def try_drop_partition(partition: LedgerPartition) -> bool:
    try:
        dropped = drop_partition_if_empty(partition)
    except DatabaseError:
        log.exception("ledger_partition_drop_failed", table=partition.name)
        return False
    log.info("ledger_partition_dropped" if dropped else "ledger_partition_kept", table=partition.name)
    return dropped


def drop_partition_if_empty(partition: LedgerPartition) -> bool:
    return run_partition_function("SELECT drop_ledger_part(%s)", partition.name)


def restore_partitions(partitions: Iterable[LedgerPartition]) -> None:
    """Replace the partitions of an empty ledger by those of a backup. The role must own the tables."""
    with connection.cursor() as cursor:
        for partition in list_partitions():
            if not partition.is_default:
                cursor.execute(f"DROP TABLE {partition.name}")
        for partition in partitions:
            cursor.execute(
                "SELECT make_ledger_part(%s, %s, %s)", [partition.name, partition.since, partition.until]
            )


@transaction.atomic
def run_partition_function(sql: str, *values: Any) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(LOCK_TIMEOUT_SQL)
        cursor.execute(NO_STATEMENT_TIMEOUT_SQL)
        cursor.execute(sql, values)
        return bool(cursor.fetchone()[0])
