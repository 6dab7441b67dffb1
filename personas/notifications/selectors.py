"""Queries for notifications and preferences."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from core.db.keyset_pagination import KeysetPage, get_keyset_page
from personas.models import (
    Event,
    EventCounter,
    Membership,
    Memory,
    MemoryStatus,
    Notification,
    NotificationKind,
    NotificationPreference,
    NotificationQueue,
)
from personas.notifications.rules import OPEN_COUNTERS, get_default_delivery, list_kinds_of_role

NOTIFICATION_PAGE_SIZE = 50


def get_notification_page(
    member: Membership, *, is_unread: bool, before: int | None = None
) -> KeysetPage[Notification]:
    """Return notifications of a member, newest first."""
    rows = Notification.objects.in_workspace(member.workspace_id).filter(member=member)
    shown = rows.filter(read_at=None) if is_unread else rows
    return get_keyset_page(
        shown.select_related("event__actor").order_by("-at", "-pk"),
        before=before,
        cursor_rows=rows,
        limit=NOTIFICATION_PAGE_SIZE,
    )


def list_preferences(member: Membership) -> list[tuple[NotificationKind, str]]:
    """Return the kinds that the member can get, each with how the member gets it."""
    rows = NotificationPreference.objects.in_workspace(member.workspace_id).filter(member=member)
    stored = dict(rows.values_list("kind", "delivery"))
    return [
        (kind, stored.get(kind) or get_default_delivery(kind)) for kind in list_kinds_of_role(member.role)
    ]


def count_proposed_memories(workspace_id: int) -> int:
    rows = Memory.objects.in_workspace(workspace_id)
    return rows.filter(status=MemoryStatus.PROPOSED, archived_at=None).count()


def count_open(workspace_id: int, kinds: Iterable[str]) -> dict[str, int]:
    """Count what is open in a workspace now, of those kinds that can be counted."""
    counters = OPEN_COUNTERS | {NotificationKind.MEMORY_PROPOSED: count_proposed_memories}
    return {kind: counters[kind](workspace_id) for kind in set(kinds) if kind in counters}


# --- all workspaces --------------------------------------------------------------------------------------


def find_workspaces_to_notify() -> list[int]:
    """Return the workspaces with events that are not numbered, or numbered after the queue's position."""
    new = Event.unscoped.filter(sequence=None).order_by().values_list("workspace_id", flat=True).distinct()
    done = NotificationQueue.unscoped.filter(workspace=OuterRef("workspace"), position__gte=OuterRef("last"))
    behind = EventCounter.unscoped.filter(~Exists(done), last__gt=0).values_list("workspace_id", flat=True)
    return sorted({*new, *behind})


def select_to_email(
    rows: QuerySet[Notification], *, after: datetime, until: datetime
) -> QuerySet[Notification]:
    """Return the unread notifications of this time that must be sent by email."""
    return rows.filter(is_email=True, emailed_at=None, read_at=None, at__gt=after, at__lte=until)


def find_members_to_email(after: datetime, until: datetime) -> list[tuple[int, int]]:
    """Return the workspace and id of the members with notifications to send by email."""
    rows = Notification.unscoped.filter(workspace__deleted_at=None)
    rows = select_to_email(rows, after=after, until=until)
    return sorted(set(rows.order_by().values_list("workspace_id", "member_id").distinct()))


def list_old_notifications(cutoff: datetime) -> QuerySet[Notification]:
    return Notification.unscoped.filter(at__lt=cutoff)


def find_old_unread(cutoff: datetime) -> list[tuple[int, int]]:
    """Return the workspace and id of the members with old unread notifications."""
    rows = list_old_notifications(cutoff).filter(read_at=None).order_by()
    return sorted(set(rows.values_list("workspace_id", "member_id").distinct()))
