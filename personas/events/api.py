"""REST resource of events: list those after a number, and wait for the next one (long polling)."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any

from django.urls import URLPattern

from personas.api.authentication import authenticate
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, CursorPage, decode_cursor, encode_cursor, page_response
from personas.api.responses import ApiResponse
from personas.api.schema import (
    Schema,
    any_object_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import check_operation_permission, endpoint
from personas.events.selectors import event_json, list_events_after
from personas.events.types import EVENT_TYPES
from personas.limits.persons import get_share_key
from personas.models import Event

# How many requests may wait at the same time in one process: in total, and for all workspaces of one person.
# A waiting request holds a server thread. Further requests are answered without waiting.
MAX_WAITING, MAX_WAITING_PER_PERSON = 4, 2
MAX_WAIT_SECONDS = 20
POLL_SECONDS = 0.5
waiting_slots = BoundedSemaphore(MAX_WAITING)
waiting_by_person: Counter[str] = Counter()
waiting_lock = Lock()

CURSOR_KIND = "events"
# Fields that all events have. The content of `data` depends on the event type.
EVENT_ENVELOPE_SCHEMA = object_schema(
    {
        "id": {"type": "string", "description": "The same id as in the header `webhook-id` of webhooks."},
        "sequence": integer_schema(
            1,
            description="Number of the event in the workspace, without gaps except for deleted events.",
        ),
        "type": enum_schema(EVENT_TYPES, title="EventType"),
        "timestamp": datetime_schema(),
        "workspace": slug_schema(),
    },
    title="EventEnvelope",
)
EVENT_SCHEMA = object_schema(
    {
        **EVENT_ENVELOPE_SCHEMA["properties"],
        "data": any_object_schema(description="IDs, numbers, digests and slugs. Schemas: see `webhooks`."),
    },
    title="Event",
)
EVENT_PARAMS: dict[str, Schema] = {
    "after": integer_schema(
        0,
        default=0,
        description=("Only events with a higher number. Send the `sequence` of the last event you have."),
    ),
    "wait": integer_schema(
        0,
        MAX_WAIT_SECONDS,
        default=0,
        description="Seconds to wait if there are no events yet (long polling).",
    ),
}


def api_list_events(call: ApiRequest) -> ApiResponse:
    cursor = call.query.get("cursor", "")
    after: int = decode_cursor(cursor, CURSOR_KIND) if cursor else call.query["after"]
    limit: int = call.query["limit"]
    events = list_events_after(call.workspace, after, limit=limit + 1)
    if not events and call.query["wait"]:
        events = wait_for_events(call, after, limit + 1)
    rows = events[:limit]
    has_more = len(events) > limit
    next_cursor = encode_cursor(rows[-1].sequence or 0, CURSOR_KIND) if has_more else None
    return page_response(call, CursorPage(rows, next_cursor), [get_event_json(call, row) for row in rows])


def wait_for_events(call: ApiRequest, after: int, limit: int) -> list[Event]:
    """Query every POLL_SECONDS until there is an event. Return at once if too many requests wait already.

    The key is checked again before events are returned: it may have been revoked meanwhile.
    """
    with waiting_slot(get_share_key(call.workspace.pk)) as is_waiting:
        deadline = time.monotonic() + call.query["wait"]
        while is_waiting and (rest := deadline - time.monotonic()) > 0:
            time.sleep(min(POLL_SECONDS, rest))
            if events := list_events_after(call.workspace, after, limit=limit):
                check_operation_permission(authenticate(call.headers, ""), LIST_EVENTS)
                return events
    return []


@contextmanager
def waiting_slot(share: str) -> Iterator[bool]:
    """Take a slot of those for all requests and of those for one person; yield whether both were free."""
    with waiting_lock:
        is_free = waiting_by_person[share] < MAX_WAITING_PER_PERSON and waiting_slots.acquire(blocking=False)
        if is_free:
            waiting_by_person[share] += 1
    try:
        yield is_free
    finally:
        if is_free:
            with waiting_lock:
                waiting_by_person[share] -= 1
                if not waiting_by_person[share]:
                    del waiting_by_person[share]
            waiting_slots.release()


def get_event_json(call: ApiRequest, event: Event) -> dict[str, Any]:
    return event_json(event, call.workspace)


LIST_EVENTS = Operation(
    api_list_events,
    "List events, oldest first",
    operation_id="listEvents",
    # Events concern the records of all agents.
    touches=Touches.WORKSPACE,
    answer=page_schema(EVENT_SCHEMA),
    query={**EVENT_PARAMS, **PAGINATION_PARAMS},
    tag="events",
)
urlpatterns: list[URLPattern] = [endpoint("events", "events-list", get=LIST_EVENTS)]
