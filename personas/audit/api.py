"""REST resource of audit events (read only)."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.record_schema import RESOURCES_BY_KIND, Snapshot, serialize_snapshots
from personas.api.responses import ApiResponse, datetime_json
from personas.api.schema import (
    Schema,
    any_object_schema,
    datetime_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.models import AuditEvent, Workspace
from personas.roles import Permission
from personas.selectors import list_audit_events

AUDIT_EVENT_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "verb": {"type": "string"},
        "kind": {"type": "string"},
        "object_id": integer_schema(),
        "object": {"type": "string"},
        "actor": {"type": "string"},
        "before": nullable_schema(any_object_schema()),
        "after": nullable_schema(any_object_schema()),
        "request_id": {"type": "string"},
        "created_at": datetime_schema(),
    },
    title="AuditEvent",
)

AUDIT_FILTERS: dict[str, Schema] = {
    "kind": line_schema(20, least=1),
    "verb": line_schema(40, least=1),
    "object_id": integer_schema(1),
    "since": datetime_schema(),
}


def list_matching_events(call: ApiRequest) -> QuerySet[AuditEvent]:
    rows = list_audit_events(call.workspace)
    for name, field in (("kind", "kind"), ("verb", "verb"), ("object_id", "object_id")):
        if name in call.query:
            rows = rows.filter(**{field: call.query[name]})
    since: datetime | None = call.query.get("since")
    return rows.filter(at__gte=since) if since else rows


def api_list_audit_events(call: ApiRequest) -> ApiResponse:
    rows = list_matching_events(call)
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    # Events about API keys contain the scopes and prefixes of the keys. As on the page, only a client that
    # may manage keys gets these.
    can_see_keys = Permission.MANAGE_KEYS in call.caller.permissions
    changes = serialize_changes(call.workspace, page.rows)
    rows_json = [
        audit_event_json(row, *((None, None) if row.kind == "key" and not can_see_keys else changes[row.pk]))
        for row in page.rows
    ]
    return page_response(call, page, rows_json)


def serialize_changes(
    workspace: Workspace, rows: Iterable[AuditEvent]
) -> dict[int, tuple[Snapshot | None, Snapshot | None]]:
    """Return the values before and after each event, by its id. Records have the names of the API."""
    rows_by_kind: dict[str, list[AuditEvent]] = defaultdict(list)
    for row in rows:
        rows_by_kind[row.kind].append(row)
    changes: dict[int, tuple[Snapshot | None, Snapshot | None]] = {}
    for kind, events in rows_by_kind.items():
        snapshots: list[Snapshot | None] = [data for event in events for data in (event.before, event.after)]
        if resource := RESOURCES_BY_KIND.get(kind):
            snapshots = [*serialize_snapshots(resource, workspace, snapshots)]
        for event, before, after in zip(events, snapshots[::2], snapshots[1::2], strict=True):
            changes[event.pk] = before, after
    return changes


def audit_event_json(row: AuditEvent, before: Snapshot | None, after: Snapshot | None) -> dict[str, Any]:
    return {
        "id": row.pk,
        "verb": row.verb,
        "kind": row.kind,
        "object_id": row.object_id,
        "object": row.object_label,
        "actor": row.actor_label,
        "before": before,
        "after": after,
        "request_id": row.request_id,
        "created_at": datetime_json(row.at),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "audit",
        "audit-list",
        get=Operation(
            api_list_audit_events,
            "List audit events, newest first",
            operation_id="listAuditEvents",
            # Audit events contain the records of all agents.
            touches=Touches.WORKSPACE,
            answer=page_schema(AUDIT_EVENT_SCHEMA),
            query={**AUDIT_FILTERS, **PAGINATION_PARAMS},
            tag="audit",
        ),
    ),
]
