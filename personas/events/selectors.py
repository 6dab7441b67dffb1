"""Queries for events."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from core.db.batch_delete import delete_in_batches
from personas.events.services import number_events
from personas.models import Event, Workspace


def list_events_after(workspace: Workspace | int, sequence: int, *, limit: int = 200) -> list[Event]:
    """Return the events after a number, oldest first. Every reader of events uses this.

    Committed events are numbered first. A reader that continues with the last number it got misses none.
    """
    number_events(workspace)
    rows = Event.objects.in_workspace(workspace).filter(sequence__gt=sequence)
    return list(rows.order_by("sequence")[:limit])


def list_newest_events(workspace: Workspace | int) -> QuerySet[Event]:
    """Return the numbered events, newest first."""
    number_events(workspace)
    return Event.objects.in_workspace(workspace).exclude(sequence=None).order_by("-sequence")


def delete_events_before(cutoff: datetime) -> int:
    """Delete the events of all workspaces before the cutoff."""
    return delete_in_batches(Event.unscoped.filter(at__lt=cutoff).exclude(sequence=None))


def event_json(event: Event, workspace: Workspace) -> dict[str, Any]:
    """Return an event as the API returns it and webhooks send it."""
    return {
        "id": event.public_id,
        "sequence": event.sequence,
        "type": event.type,
        "timestamp": event.at.isoformat().replace("+00:00", "Z"),
        "workspace": workspace.slug,
        "data": event.data,
    }
