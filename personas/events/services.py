"""Record events in the transaction of their cause, and number the committed ones."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from core.db.before_commit import before_commit, get_waiting_items
from core.db.fast import WriteBatch
from personas.actors import Actor
from personas.events.types import get_event_type
from personas.models import Event, EventCounter, Workspace

# How many events are numbered in one transaction.
NUMBERING_BATCH = 400


def build_event(
    workspace: Workspace | int, name: str, data: dict[str, Any], *, by: Actor | None = None
) -> Event:
    """Return an unsaved event. The user of `by` gets no notification of it."""
    event_type = get_event_type(name)
    # Check the data only in development and in tests: the tests run every flow.
    if not settings.PRODUCTION:
        event_type.check_data(data)
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    user_id = by.user.pk if by and by.user else None
    return Event(workspace_id=workspace_id, type=name, data=data, at=timezone.now(), actor_id=user_id)


def record_event(
    workspace: Workspace | int,
    name: str,
    data: dict[str, Any],
    *,
    by: Actor | None = None,
    batch: WriteBatch | None = None,
) -> None:
    """Record an event in the current transaction.

    It is inserted at the end of the transaction, together with the events of its builds. If the transaction
    has no hooks, it is inserted now, or with `batch`.
    """
    event = build_event(workspace, name, data, by=by)
    if not before_commit(insert_events, event, is_last=True):
        Event.objects.insert([event], batch=batch)


def record_events(events: Sequence[Event]) -> None:
    """Record several events in the current transaction."""
    if not all(before_commit(insert_events, event, is_last=True) for event in events):
        Event.objects.insert(events)


def insert_events(events: list[Event]) -> None:
    """Insert the events that no build has inserted: the hook at the end of a transaction."""
    if events:
        Event.objects.insert(reset_keys(events))


def add_events_to_batch(events: Sequence[Event], batch: WriteBatch) -> list[Event]:
    """Add these events and those that wait for the end of the transaction to a batch, as one statement.

    Return the waiting ones. The caller must call `confirm_events` with them if its savepoint is kept.
    """
    waiting = list(get_waiting_items(insert_events))
    if waiting or events:
        Event.objects.insert(reset_keys([*waiting, *events]), batch=batch)
    return waiting


def confirm_events(inserted: Sequence[Event]) -> None:
    """Do not insert these events at the end of the transaction, because a batch has inserted them."""
    waiting = get_waiting_items(insert_events)
    waiting[:] = [event for event in waiting if not any(event is one for one in inserted)]


def reset_keys(events: Sequence[Event]) -> Sequence[Event]:
    """Remove the primary keys of an insert that was rolled back."""
    for event in events:
        event.pk = None
    return events


def number_events(workspace: Workspace | int) -> None:
    """Give the committed events of a workspace their numbers, in the order of their ids.

    The row lock of the counter lets one transaction at a time number the events of a workspace.
    """
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    unnumbered = Event.objects.in_workspace(workspace_id).filter(sequence=None).order_by("pk")
    while unnumbered.exists():
        with transaction.atomic():
            counter = lock_event_counter(workspace_id)
            events = list(unnumbered.only("pk", "workspace_id", "sequence")[:NUMBERING_BATCH])
            for number, event in enumerate(events, start=counter.last + 1):
                event.sequence = number
            Event.objects.in_workspace(workspace_id).bulk_update(events, ["sequence"])
            counter.last += len(events)
            counter.save(update_fields=["last"])


def lock_event_counter(workspace_id: int) -> EventCounter:
    rows = EventCounter.objects.in_workspace(workspace_id)
    counter = rows.select_for_update(no_key=True).first()
    if counter is None:
        rows.bulk_create([EventCounter(workspace_id=workspace_id)], ignore_conflicts=True)
        counter = rows.select_for_update(no_key=True).get()
    return counter
