"""The tables that the ledger lies in: one for each month on PostgreSQL, a single one on SQLite."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

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
