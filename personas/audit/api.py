"""REST resource of audit events (read only)."""

from typing import Any

from django.urls import URLPattern

from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.record_resource import limited
from personas.api.responses import Answer, moment_told
from personas.api.schema import anything, line, moment, nullable, page_of, shape, whole
from personas.api.views import endpoint
from personas.models import AuditEvent
from personas.selectors import audit_of

EVENT = shape(
    {
        "id": whole(1),
        "verb": {"type": "string"},
        "kind": {"type": "string"},
        "object_id": whole(),
        "object": {"type": "string"},
        "actor": {"type": "string"},
        "before": nullable(anything()),
        "after": nullable(anything()),
        "request_id": {"type": "string"},
        "at": moment(),
    }
)


def audit(call: Call) -> Answer:
    if call.caller.is_limited:
        # It tells what every record held.
        raise limited()
    rows = audit_of(call.workspace)
    for name, field in (("kind", "kind"), ("verb", "verb"), ("object_id", "object_id")):
        if name in call.query:
            rows = rows.filter(**{field: call.query[name]})
    if since := call.query.get("since"):
        rows = rows.filter(at__gte=since)
    page = page_of_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_answered(call, page, [event_told(row) for row in page.rows])


def event_told(row: AuditEvent) -> dict[str, Any]:
    return {
        "id": row.pk,
        "verb": row.verb,
        "kind": row.kind,
        "object_id": row.object_id,
        "object": row.object_label,
        "actor": row.actor_label,
        "before": row.before,
        "after": row.after,
        "request_id": row.request_id,
        "at": moment_told(row.at),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "audit",
        "audit-list",
        get=Operation(
            audit,
            "What was done, newest first",
            answer=page_of(EVENT),
            query={
                "kind": line(20, least=1),
                "verb": line(40, least=1),
                "object_id": whole(1),
                "since": moment(),
                **PAGING,
            },
            tag="audit",
        ),
    ),
]
