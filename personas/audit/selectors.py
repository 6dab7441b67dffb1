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
    workspace: Workspace, wanted: AuditFilter, *, before: int | None = None, using: str = DEFAULT_DB_ALIAS
) -> AuditPage:
    rows = filter_audit_events(workspace, wanted).using(using)
    if before is not None:
        rows = rows.filter(older_than_event(workspace, before, using))
    found = list(rows[: AUDIT_PAGE_SIZE + 1])
    return AuditPage(
        found[:AUDIT_PAGE_SIZE], found[AUDIT_PAGE_SIZE - 1].pk if len(found) > AUDIT_PAGE_SIZE else None
    )


def filter_audit_events(workspace: Workspace, wanted: AuditFilter) -> QuerySet[AuditEvent]:
    """Return matching events; the large columns `before` and `after` are deferred."""
    rows = list_audit_events(workspace).defer("before", "after")
    exact = {
        "kind": wanted.kind or None,
        "verb": wanted.verb or None,
        "object_id": wanted.object_id,
        "at__gte": wanted.since,
        "at__lt": wanted.until,
    }
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if wanted.actor:
        rows = rows.filter(actor_label__icontains=wanted.actor)
    return rows.filter(object_label__icontains=wanted.text) if wanted.text else rows


def older_than_event(workspace: Workspace, event_id: int, using: str) -> Q:
    """Return the keyset condition for the events after this one in the order newest first."""
    rows = list_audit_events(workspace).using(using).filter(pk=event_id)
    at = rows.values_list("at", flat=True).first()
    if at is None:
        return Q(pk__lt=event_id)
    # The first condition is redundant, but lets the database use the index on `at`.
    return Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=event_id))
