"""Daily limits (UTC) that all processes share: one statement checks the limit and counts."""

from datetime import UTC, date, datetime, timedelta

from django.db import connection
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from personas.errors import DomainError
from personas.limits.models import DailyStorage, DailyUsage

# The database checks and adds on the locked row, so that concurrent requests cannot exceed the limit.
USE_SQL = """
INSERT INTO personas_dailyusage (kind, subject, day, amount) VALUES (%s, %s, %s, %s)
ON CONFLICT (kind, subject, day) DO UPDATE SET amount = personas_dailyusage.amount + excluded.amount
WHERE personas_dailyusage.amount + excluded.amount <= %s
RETURNING amount
"""
KEEP_COUNTERS = timedelta(days=90)


class DailyLimitReached(DomainError):
    """A daily limit is used up. The message names the limit, its setting and who can change it."""

    code = "daily_limit_reached"

    def __init__(self, message: str) -> None:
        self.retry_after = get_seconds_to_midnight(timezone.now())
        super().__init__(message)


def use_daily_limit(kind: str, subject: str | int, limit: int, amount: int = 1) -> bool:
    """Count an amount; return False, and change nothing, if this would exceed the limit. 0 is no limit."""
    if limit and amount > limit:
        return False
    values: list[str | int | date] = [kind, str(subject), get_utc_day(timezone.now()), amount, limit or 2**62]
    with connection.cursor() as cursor:
        cursor.execute(USE_SQL, values)
        return cursor.fetchone() is not None


def get_utc_day(now: datetime) -> date:
    return now.astimezone(UTC).date()


def get_seconds_to_midnight(now: datetime) -> int:
    midnight = datetime.combine(get_utc_day(now) + timedelta(days=1), datetime.min.time(), UTC)
    return max(1, int((midnight - now).total_seconds()))


def delete_old_counters() -> int:
    day = get_utc_day(timezone.now()) - KEEP_COUNTERS
    return delete_in_batches(DailyStorage.unscoped.filter(day__lt=day)) + delete_in_batches(
        DailyUsage.objects.filter(day__lt=day)
    )
