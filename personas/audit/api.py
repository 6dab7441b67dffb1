"""REST resource of audit events (read only)."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
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
from personas.models import AuditEvent
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
        "at": datetime_schema(),
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
    rows_json = [audit_event_json(row, is_hidden=row.kind == "key" and not can_see_keys) for row in page.rows]
    return page_response(call, page, rows_json)


def audit_event_json(row: AuditEvent, *, is_hidden: bool) -> dict[str, Any]:
    return {
        "id": row.pk,
        "verb": row.verb,
        "kind": row.kind,
        "object_id": row.object_id,
        "object": row.object_label,
        "actor": row.actor_label,
        "before": None if is_hidden else row.before,
        "after": None if is_hidden else row.after,
        "request_id": row.request_id,
        "at": datetime_json(row.at),
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
