"""Queries for the audit log, with keyset pagination: late pages are as fast as the first."""

from dataclasses import dataclass
from datetime import datetime

from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet

from core.db.keyset_pagination import KeysetPage, get_keyset_page
from personas.models import AuditEvent, Workspace
from personas.selectors import list_audit_events

AUDIT_PAGE_SIZE = 50


@dataclass(frozen=True)
class AuditFilter:
    """Filters of the audit log. An empty value does not filter."""

    text: str = ""
    actor: str = ""
    kind: str = ""
    verb: str = ""
    object_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None


def get_audit_page(
    workspace: Workspace, filters: AuditFilter, *, before: int | None = None, using: str = DEFAULT_DB_ALIAS
) -> KeysetPage[AuditEvent]:
    return get_keyset_page(
        filter_audit_events(workspace, filters).using(using),
        before=before,
        cursor_rows=list_audit_events(workspace).using(using),
        limit=AUDIT_PAGE_SIZE,
    )


def filter_audit_events(workspace: Workspace, filters: AuditFilter) -> QuerySet[AuditEvent]:
    """Return the events that match the filters, without loading the large columns `before` and `after`."""
    rows = list_audit_events(workspace).defer("before", "after")
    exact = {
        "kind": filters.kind or None,
        "verb": filters.verb or None,
        "object_id": filters.object_id,
        "at__gte": filters.since,
        "at__lt": filters.until,
    }
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if filters.actor:
        rows = rows.filter(actor_label__icontains=filters.actor)
    return rows.filter(object_label__icontains=filters.text) if filters.text else rows
