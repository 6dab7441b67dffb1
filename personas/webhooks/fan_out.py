"""Create the deliveries of new events, one for each endpoint whose filters match."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F

from personas.events.selectors import list_events_after
from personas.events.services import number_events
from personas.models import (
    EndpointStatus,
    Event,
    EventCounter,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
)
from personas.tenancy.lost_nodes import list_from_workspaces
from personas.webhooks.services import TEST_EVENT

FAN_OUT_BATCH = 200


def list_workspaces_to_fan_out() -> list[int]:
    """Return the workspaces with enabled endpoints and with events that have no deliveries yet."""
    return list_from_workspaces(find_waiting_workspaces)


def find_waiting_workspaces() -> list[int]:
    enabled = WebhookEndpoint.unscoped.filter(status=EndpointStatus.ENABLED)
    ids = set(enabled.order_by().values_list("workspace_id", flat=True).distinct())
    if not ids:
        return []
    new = Event.unscoped.filter(workspace__in=ids, sequence=None).order_by()
    waiting = set(new.values_list("workspace_id", flat=True).distinct())
    # Events may already be numbered, for example by an API request, but not have deliveries yet.
    last = dict(EventCounter.unscoped.filter(workspace__in=ids).values_list("workspace_id", "last"))
    positions = dict(WebhookQueue.unscoped.filter(workspace__in=ids).values_list("workspace_id", "position"))
    return sorted(waiting | {pk for pk, number in last.items() if positions.get(pk, 0) < number})


def fan_out_events(workspace_id: int) -> int:
    """Create the deliveries of the next events of a workspace, and return how many events these were.

    The row lock of the queue lets one worker at a time do this, so each event has its deliveries once.
    """
    number_events(workspace_id)
    with transaction.atomic():
        rows = WebhookQueue.objects.in_workspace(workspace_id)
        queue = rows.select_for_update(no_key=True, skip_locked=True).first()
        if queue is None:
            return 0
        events = list_events_after(workspace_id, queue.position, limit=FAN_OUT_BATCH)
        if not events:
            return 0
        endpoints = list(
            WebhookEndpoint.objects.in_workspace(workspace_id).filter(status=EndpointStatus.ENABLED)
        )
        WebhookDelivery.objects.in_workspace(workspace_id).bulk_create(
            [
                WebhookDelivery(workspace_id=workspace_id, endpoint=endpoint, event=event)
                for event in events
                for endpoint in endpoints
                if matches_filters(endpoint, event)
            ]
        )
        queue.position = events[-1].sequence or queue.position
        queue.save(update_fields=["position"])
    return len(events)


def matches_filters(endpoint: WebhookEndpoint, event: Event) -> bool:
    """Whether an endpoint gets an event.

    With a filter by agent, channel or label, it gets only events that name one of these.
    """
    if event.at < endpoint.active_since:
        return False
    if event.type == TEST_EVENT:
        return bool(event.data["endpoint_id"] == endpoint.pk)
    filters: Sequence[tuple[list[str], str | None]] = (
        (endpoint.types, event.type),
        (endpoint.agents, event.data.get("agent")),
        (endpoint.channels, event.data.get("channel")),
        (endpoint.labels, event.data.get("label")),
    )
    return all(not allowed or value in allowed for allowed, value in filters)


def list_due_endpoints(now: datetime) -> list[WebhookEndpoint]:
    """Return the endpoints with due deliveries that no worker serves now, the longest unserved first."""
    due = WebhookDelivery.unscoped.filter(status="pending", due_at__lte=now).order_by()
    ids = set(due.values_list("endpoint_id", flat=True).distinct())
    rows = WebhookEndpoint.unscoped.filter(
        pk__in=ids, status=EndpointStatus.ENABLED, workspace__deleted_at=None
    )
    rows = rows.order_by(F("served_at").asc(nulls_first=True), "pk")
    return [
        row
        for row in rows
        if (row.leased_until is None or row.leased_until < now)
        and (row.held_until is None or row.held_until <= now)
    ]
