"""Queries of the audit log, with keyset pagination: every page costs the same."""

from dataclasses import dataclass
from datetime import datetime

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Q, QuerySet

from personas.models import AuditEvent, Workspace
from personas.selectors import list_audit_events

AUDIT_PAGE_SIZE = 50


@dataclass(frozen=True)
class AuditFilter:
    """Filters of the audit log; empty ones do not apply."""

    text: str = ""
    actor: str = ""
    kind: str = ""
    verb: str = ""
    object_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class AuditPage:
    """Events, newest first, and the cursor of the next page; None on the last page."""

    events: list[AuditEvent]
    next_cursor: int | None


def get_audit_page(
    workspace: Workspace, filters: AuditFilter, *, before: int | None = None, using: str = DEFAULT_DB_ALIAS
) -> AuditPage:
    rows = filter_audit_events(workspace, filters).using(using)
    if before is not None:
        rows = rows.filter(older_than_event(workspace, before, using))
    events = list(rows[: AUDIT_PAGE_SIZE + 1])
    return AuditPage(
        events[:AUDIT_PAGE_SIZE], events[AUDIT_PAGE_SIZE - 1].pk if len(events) > AUDIT_PAGE_SIZE else None
    )


def filter_audit_events(workspace: Workspace, filters: AuditFilter) -> QuerySet[AuditEvent]:
    """Return matching events; the large columns `before` and `after` are deferred."""
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


def older_than_event(workspace: Workspace, event_id: int, using: str) -> Q:
    """Return the keyset condition for the events after this one in the order newest first."""
    rows = list_audit_events(workspace).using(using).filter(pk=event_id)
    at = rows.values_list("at", flat=True).first()
    if at is None:
        return Q(pk__lt=event_id)
    # The first condition is redundant, but lets the database use the index on `at`.
    return Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=event_id))
