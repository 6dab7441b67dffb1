"""The daily quota of bytes that a workspace, and all workspaces of a person together, may store.

Calls take from a portion of the quota that their process has reserved in the database, so most calls need no
statement. All processes together never exceed the quota. The rest of a portion is lost when a process ends.
Pushes are part of a transaction, so they are charged by it and not from a portion.
"""

from collections import OrderedDict
from datetime import date
from threading import Lock

from django.conf import settings
from django.db import connection
from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from personas.errors import DomainError
from personas.limits.daily_usage import get_seconds_to_midnight, get_utc_day, use_daily_limit
from personas.limits.models import DailyStorage
from personas.limits.persons import find_person_id, get_person_share

PORTION_SIZE = 256 * 1024
# A small quota is divided into this many portions: a process cannot give back what is left of a portion.
PORTIONS_PER_QUOTA = 256
# If a process has more reservations, the oldest one is dropped. This limits the memory.
MAX_RESERVATIONS = 10_000
UNLIMITED = 2**62
PERSON_BYTES = "person_bytes"
# The database checks and adds on the locked row, so that concurrent requests cannot exceed the limit.
RESERVE_SQL = """
INSERT INTO personas_dailystorage (workspace_id, day, size) VALUES (%s, %s, %s)
ON CONFLICT (workspace_id, day) DO UPDATE SET size = personas_dailystorage.size + excluded.size
WHERE personas_dailystorage.size + excluded.size <= %s
RETURNING size
"""
OWNERS = {
    "workspace": ("This workspace has used up its", "DRAMATIS_CALL_BYTES_PER_DAY"),
    "person": (
        "The workspaces of the person that this workspace counts for have used up their common",
        "DRAMATIS_CALL_BYTES_PER_DAY × DRAMATIS_PERSON_SHARE",
    ),
}


class CallQuotaExceeded(DomainError):
    """The workspace, or its person, has used up the daily quota of stored bytes."""

    code = "call_quota_exceeded"

    def __init__(self, owner: str, quota: int) -> None:
        self.retry_after = get_seconds_to_midnight(timezone.now())
        start, setting = OWNERS[owner]
        super().__init__(
            f"{start} daily quota of {quota:,} bytes of stored data (calls and pushed files). The operator "
            f"sets it with {setting}. It resets at 00:00 UTC. Fetches without call data are still served."
        )


class QuotaReservations:
    """The reserved bytes that this process has left, by workspace."""

    owner = "workspace"

    def __init__(self) -> None:
        self._lock = Lock()
        self._left: OrderedDict[int, tuple[date, int]] = OrderedDict()

    def take(self, owner_id: int, size: int) -> None:
        """Take bytes of the quota. Raise CallQuotaExceeded if there are not enough left."""
        day = get_utc_day(timezone.now())
        if self.add(owner_id, day, -size):
            return
        quota = get_byte_quota(self.owner)
        portion = max(size, min(PORTION_SIZE, quota // PORTIONS_PER_QUOTA))
        if self.reserve(owner_id, day, portion, quota):
            self.add(owner_id, day, portion - size)
        elif portion == size or not self.reserve(owner_id, day, size, quota):
            raise CallQuotaExceeded(self.owner, quota)

    def reserve(self, owner_id: int, day: date, size: int, quota: int) -> bool:
        return reserve_bytes(owner_id, day, size, quota)

    def add(self, owner_id: int, day: date, size: int) -> bool:
        """Change the reservation of an owner. If it has too few bytes, change nothing and return False."""
        with self._lock:
            reserved_day, left = self._left.get(owner_id, (day, 0))
            left = size + (left if reserved_day == day else 0)
            if left < 0:
                return False
            self._left[owner_id] = day, left
            if len(self._left) > MAX_RESERVATIONS:
                self._left.popitem(last=False)
        return True

    def clear(self) -> None:
        with self._lock:
            self._left.clear()


class PersonReservations(QuotaReservations):
    """The reserved bytes that this process has left, by person."""

    owner = "person"

    def reserve(self, owner_id: int, day: date, size: int, quota: int) -> bool:
        return use_daily_limit(PERSON_BYTES, owner_id, quota, size)


PROCESS_RESERVATIONS = QuotaReservations()
PERSON_RESERVATIONS = PersonReservations()


def take_call_bytes(workspace_id: int, size: int) -> None:
    """Take bytes for the data of a call. Raise CallQuotaExceeded if workspace or person has too few left."""
    person_id = find_person_id(workspace_id)
    if person_id is not None:
        PERSON_RESERVATIONS.take(person_id, size)
    try:
        PROCESS_RESERVATIONS.take(workspace_id, size)
    except CallQuotaExceeded:
        if person_id is not None:
            PERSON_RESERVATIONS.add(person_id, get_utc_day(timezone.now()), size)
        raise


def charge_pushed_bytes(workspace_id: int, size: int) -> None:
    """Charge bytes in the transaction of the caller. Raise CallQuotaExceeded if there are not enough left."""
    day, person_id = get_utc_day(timezone.now()), find_person_id(workspace_id)
    quota = get_byte_quota("person")
    if person_id is not None and not use_daily_limit(PERSON_BYTES, person_id, quota, size):
        raise CallQuotaExceeded("person", quota)
    quota = get_byte_quota("workspace")
    if not reserve_bytes(workspace_id, day, size, quota):
        raise CallQuotaExceeded("workspace", quota)


def get_byte_quota(owner: str) -> int:
    """Return the bytes per day of a workspace or of a person."""
    quota: int = settings.DRAMATIS_CALL_BYTES_PER_DAY
    return quota * (get_person_share() if owner == "person" else 1) or UNLIMITED


def reserve_bytes(workspace_id: int, day: date, size: int, quota: int) -> bool:
    """Reserve bytes in the database; return False, and change nothing, if this would exceed the quota."""
    if size > quota:
        return False
    with workspace_scope(workspace_id), connection.cursor() as cursor:
        cursor.execute(RESERVE_SQL, [workspace_id, day, size, quota])
        return cursor.fetchone() is not None


def get_stored_today(workspace_id: int) -> int:
    """Return the bytes that are reserved today for a workspace."""
    rows = DailyStorage.objects.in_workspace(workspace_id).filter(day=get_utc_day(timezone.now()))
    return rows.values_list("size", flat=True).first() or 0
