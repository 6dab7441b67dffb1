"""Create notifications from events, mark them as read, and save preferences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Count
from django.utils import timezone

from core.db.batch_delete import delete_in_batches
from core.db.workspace_scope import workspace_scope
from personas.events.selectors import list_events_after
from personas.events.services import number_events
from personas.models import (
    Event,
    Membership,
    Notification,
    NotificationDelivery,
    NotificationKind,
    NotificationPreference,
    NotificationQueue,
)
from personas.notifications.rules import (
    EXCLUDED_SOURCES,
    GROUPED_KINDS,
    NOTIFICATION_RULES,
    RECIPIENT_SOURCES,
    REVIEW_END_TYPES,
    SETTLING_TYPES,
    NotificationRule,
    get_default_delivery,
)
from personas.notifications.selectors import (
    count_open,
    find_old_unread,
    find_workspaces_to_notify,
    list_old_notifications,
)
from personas.roles import has_permission
from personas.tenancy.lost_nodes import list_from_workspaces

log = structlog.get_logger(__name__)

EVENT_BATCH = 200
# Nobody is notified of older events, for example after a long outage.
MAX_EVENT_AGE = timedelta(days=1)
Preferences = Mapping[tuple[int, str], str]


def create_all_notifications() -> None:
    """Create the notifications of the new events of all workspaces."""
    for workspace_id in list_from_workspaces(find_workspaces_to_notify):
        try:
            with workspace_scope(workspace_id):
                while create_notifications(workspace_id):
                    pass
        except DatabaseError:
            log.exception("notifications_failed", workspace=workspace_id)


def create_notifications(workspace_id: int) -> int:
    """Create the notifications of the next events of a workspace, and return how many events these were.

    The row lock of the queue lets one worker at a time do this, so nobody is notified twice.
    """
    number_events(workspace_id)
    with transaction.atomic():
        queue = lock_notification_queue(workspace_id)
        if queue is None:
            return 0
        events = list_events_after(workspace_id, queue.position, limit=EVENT_BATCH)
        if not events:
            return 0
        oldest = timezone.now() - MAX_EVENT_AGE
        notify_members(
            workspace_id,
            [event for event in events if event.type in NOTIFICATION_RULES and event.at > oldest],
        )
        end_settled_groups(workspace_id, events)
        queue.position = events[-1].sequence or queue.position
        queue.save(update_fields=["position"])
    return len(events)


def lock_notification_queue(workspace_id: int) -> NotificationQueue | None:
    """Lock the queue of a workspace; None if another worker has it. A new queue skips old events."""
    rows = NotificationQueue.objects.in_workspace(workspace_id)
    if not rows.exists():
        old = Event.objects.in_workspace(workspace_id).filter(at__lt=timezone.now() - MAX_EVENT_AGE)
        numbers = old.exclude(sequence=None).order_by("-sequence").values_list("sequence", flat=True)
        position = numbers.first() or 0
        queue = NotificationQueue(workspace_id=workspace_id, position=position)
        rows.bulk_create([queue], ignore_conflicts=True)
    return rows.select_for_update(no_key=True, skip_locked=True).first()


def notify_members(workspace_id: int, events: Sequence[Event]) -> None:
    """Create the notifications of these events, and count them for the members who get them."""
    if not events:
        return
    members = lock_members(workspace_id)
    batch = NotificationBatch(workspace_id, load_preferences(workspace_id), load_unread_groups(workspace_id))
    for event in events:
        rule = NOTIFICATION_RULES[event.type]
        for member in list_recipients(event, rule, members, batch.preferences):
            batch.add(event, rule, member)
    batch.store()
    end_review_requests(workspace_id, events)


def end_settled_groups(workspace_id: int, events: Sequence[Event]) -> None:
    """Mark notifications as read if events settled the last open memory or file of their kind."""
    kinds = {SETTLING_TYPES[event.type] for event in events if event.type in SETTLING_TYPES}
    settled = [kind for kind, count in count_open(workspace_id, kinds).items() if not count]
    if not settled:
        return
    lock_members(workspace_id)
    rows = Notification.objects.in_workspace(workspace_id).filter(read_at=None, kind__in=settled)
    member_ids = set(rows.values_list("member_id", flat=True))
    rows.update(read_at=timezone.now())
    count_unread(workspace_id, member_ids)


def end_review_requests(workspace_id: int, events: Sequence[Event]) -> None:
    """Mark requests for a review as read if the release was decided or closed after them."""
    # The sequence number of the last of these events, by release.
    ends = {event.data["release_id"]: event.sequence for event in events if event.type in REVIEW_END_TYPES}
    if not ends:
        return
    rows = Notification.objects.in_workspace(workspace_id).filter(
        kind=NotificationKind.REVIEW_REQUESTED, read_at=None
    )
    requests = rows.filter(event__data__release_id__in=list(ends)).select_related("event")
    ended = {
        row.pk: row.member_id
        for row in requests
        if (row.event.sequence or 0) < (ends[row.event.data["release_id"]] or 0)
    }
    rows.filter(pk__in=list(ended)).update(read_at=timezone.now())
    count_unread(workspace_id, set(ended.values()))


@dataclass
class NotificationBatch:
    """Collects the notifications of some events of a workspace, and stores them together."""

    workspace_id: int
    preferences: Preferences
    # Unread notifications in which further events are counted, by member and kind.
    groups: dict[tuple[int, str], Notification]
    new: list[Notification] = field(default_factory=list)
    counted: dict[int, Notification] = field(default_factory=dict)

    def add(self, event: Event, rule: NotificationRule, member: Membership) -> None:
        group = self.groups.get((member.pk, rule.kind)) if rule.is_grouped else None
        if group is None:
            self.new.append(notification := self.build_notification(event, rule, member))
            if rule.is_grouped:
                self.groups[member.pk, rule.kind] = notification
            return
        group.event, group.at, group.count = event, event.at, group.count + 1
        if group.pk:
            self.counted[group.pk] = group

    def build_notification(self, event: Event, rule: NotificationRule, member: Membership) -> Notification:
        delivery = get_delivery(member, rule.kind, self.preferences)
        return Notification(
            workspace_id=self.workspace_id,
            member=member,
            event=event,
            kind=rule.kind,
            at=event.at,
            is_email=delivery == NotificationDelivery.EMAIL,
        )

    def store(self) -> None:
        for group in self.counted.values():
            group.save(update_fields=["event", "at", "count"])
        if self.new:
            # Ignore conflicts, so that a repeated run does not fail. Nobody is notified of an event twice.
            Notification.objects.insert(self.new, ignore_conflicts=True)
        count_unread(self.workspace_id, {notification.member_id for notification in self.new})


def list_recipients(
    event: Event, rule: NotificationRule, members: Iterable[Membership], preferences: Preferences
) -> list[Membership]:
    """Return the members who are notified of an event. The user who caused it is not among them."""
    user_ids, excluded_ids = (
        source(event) if (source := sources.get(event.type)) else set()
        for sources in (RECIPIENT_SOURCES, EXCLUDED_SOURCES)
    )
    return [
        member
        for member in members
        if member.user_id != event.actor_id
        and member.user_id not in excluded_ids
        and (
            member.user_id in user_ids
            or (rule.permission is not None and has_permission(member.role, rule.permission))
        )
        and member.joined_at <= event.at
        and get_delivery(member, rule.kind, preferences) != NotificationDelivery.NONE
    ]


def get_delivery(member: Membership, kind: str, preferences: Preferences) -> str:
    return preferences.get((member.pk, kind)) or get_default_delivery(kind)


def load_preferences(workspace_id: int) -> Preferences:
    rows = NotificationPreference.objects.in_workspace(workspace_id)
    return {
        (member, kind): delivery for member, kind, delivery in rows.values_list("member", "kind", "delivery")
    }


def load_unread_groups(workspace_id: int) -> dict[tuple[int, str], Notification]:
    """Return the unread notifications in which further events are counted."""
    rows = Notification.objects.in_workspace(workspace_id).filter(read_at=None, kind__in=GROUPED_KINDS)
    return {(row.member_id, row.kind): row for row in rows.order_by("pk")}


def lock_members(workspace_id: int, *, pk: int | None = None) -> list[Membership]:
    """Lock the memberships whose numbers of unread notifications change, in the order of their ids."""
    rows = Membership.objects.in_workspace(workspace_id)
    rows = rows if pk is None else rows.filter(pk=pk)
    return list(rows.select_for_update(of=("self",), no_key=True).order_by("pk"))


def count_unread(workspace_id: int, member_ids: Iterable[int]) -> None:
    """Store the numbers of unread notifications of members whose rows are locked."""
    ids = sorted(member_ids)
    rows = Notification.objects.in_workspace(workspace_id).filter(member__in=ids, read_at=None)
    counts = dict(rows.order_by().values_list("member").annotate(count=Count("pk")))
    members = Membership.objects.in_workspace(workspace_id)
    for member_id in ids:
        members.filter(pk=member_id).update(unread_count=counts.get(member_id, 0))


@transaction.atomic
def mark_as_read(member: Membership, *, pk: int | None = None) -> int:
    """Mark one notification of a member as read, or all of them. Return how many were unread."""
    lock_members(member.workspace_id, pk=member.pk)
    rows = Notification.objects.in_workspace(member.workspace_id).filter(member=member, read_at=None)
    changed = (rows if pk is None else rows.filter(pk=pk)).update(read_at=timezone.now())
    if changed:
        count_unread(member.workspace_id, [member.pk])
    return changed


@transaction.atomic
def save_preferences(member: Membership, deliveries: Mapping[str, str]) -> None:
    """Save how a member gets notifications, by kind. Only what differs from the default is stored."""
    lock_members(member.workspace_id, pk=member.pk)
    rows = NotificationPreference.objects.in_workspace(member.workspace_id).filter(member=member)
    rows.filter(kind__in=list(deliveries)).delete()
    NotificationPreference.objects.insert(
        [
            NotificationPreference(
                workspace_id=member.workspace_id, member=member, kind=kind, delivery=delivery
            )
            for kind, delivery in deliveries.items()
            if delivery != get_default_delivery(kind)
        ]
    )


def delete_notifications_before(cutoff: datetime) -> int:
    """Delete the old notifications of all workspaces, and count those that are still unread."""
    unread = find_old_unread(cutoff)
    count = delete_in_batches(list_old_notifications(cutoff))
    for workspace_id, member_id in unread:
        with transaction.atomic():
            lock_members(workspace_id, pk=member_id)
            count_unread(workspace_id, [member_id])
    return count
