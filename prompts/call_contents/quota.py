"""The daily quota of bytes that the calls of a workspace may store.

Each process reserves a portion of the quota in the database and then takes from it in memory, so most calls
need no statement. All processes together never exceed the quota. The rest of a portion is lost when a process
ends.
"""

from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from threading import Lock

from django.conf import settings
from django.db import connection
from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from personas.errors import DomainError
from prompts.models import DailyCallStorage

PORTION_SIZE = 256 * 1024
# A small quota is reserved in small portions, because the rest of a portion is of no use to other processes.
PORTIONS_PER_QUOTA = 256
# If there are more workspaces, the reservation that was made first is dropped. This limits the memory.
MAX_RESERVATIONS = 10_000
UNLIMITED = 2**62
# Both databases evaluate the condition and the sum on the locked row.
RESERVE_SQL = """
INSERT INTO prompts_dailycallstorage (workspace_id, day, size) VALUES (%s, %s, %s)
ON CONFLICT (workspace_id, day) DO UPDATE SET size = prompts_dailycallstorage.size + excluded.size
WHERE prompts_dailycallstorage.size + excluded.size <= %s
RETURNING size
"""


class CallQuotaExceeded(DomainError):
    """The calls of the workspace have used up the daily quota of stored bytes."""

    code = "call_quota_exceeded"

    def __init__(self, quota: int, now: datetime) -> None:
        self.retry_after = get_seconds_to_midnight(now)
        super().__init__(
            f"The calls of this workspace have used up the daily quota of {quota:,} bytes of stored "
            "data (DRAMATIS_CALL_BYTES_PER_DAY). The quota resets at 00:00 UTC. Fetches without call "
            "data are still served."
        )


class QuotaReservations:
    """The reserved bytes that this process has left, by workspace."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: OrderedDict[int, tuple[date, int]] = OrderedDict()

    def take(self, workspace_id: int, size: int) -> None:
        """Take bytes of the quota. Raise CallQuotaExceeded if there are not enough left."""
        now = timezone.now()
        day = get_utc_day(now)
        if self._add(workspace_id, day, -size):
            return
        quota: int = settings.DRAMATIS_CALL_BYTES_PER_DAY or UNLIMITED
        portion = max(size, min(PORTION_SIZE, quota // PORTIONS_PER_QUOTA))
        if reserve_bytes(workspace_id, day, portion, quota):
            self._add(workspace_id, day, portion - size)
        elif portion == size or not reserve_bytes(workspace_id, day, size, quota):
            raise CallQuotaExceeded(quota, now)

    def _add(self, workspace_id: int, day: date, size: int) -> bool:
        """Change the reservation of a workspace. If it has too few bytes, change nothing and return False."""
        with self._lock:
            reserved_day, left = self._left.get(workspace_id, (day, 0))
            left = size + (left if reserved_day == day else 0)
            if left < 0:
                return False
            self._left[workspace_id] = day, left
            if len(self._left) > MAX_RESERVATIONS:
                self._left.popitem(last=False)
        return True

    def clear(self) -> None:
        with self._lock:
            self._left.clear()


PROCESS_RESERVATIONS = QuotaReservations()


def reserve_bytes(workspace_id: int, day: date, size: int, quota: int) -> bool:
    """Reserve bytes in the database; return False, and change nothing, if this would exceed the quota."""
    if size > quota:
        return False
    with workspace_scope(workspace_id), connection.cursor() as cursor:
        cursor.execute(RESERVE_SQL, [workspace_id, day, size, quota])
        return cursor.fetchone() is not None


def get_utc_day(now: datetime) -> date:
    return now.astimezone(UTC).date()


def get_seconds_to_midnight(now: datetime) -> int:
    midnight = datetime.combine(get_utc_day(now) + timedelta(days=1), datetime.min.time(), UTC)
    return max(1, int((midnight - now).total_seconds()))


def get_stored_today(workspace_id: int) -> int:
    """Return the bytes that are reserved today for the calls of a workspace."""
    rows = DailyCallStorage.objects.in_workspace(workspace_id).filter(day=get_utc_day(timezone.now()))
    return rows.values_list("size", flat=True).first() or 0
