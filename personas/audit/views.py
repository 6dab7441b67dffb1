"""Pages of the audit log: list of events, one event with its changes, export."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils.http import urlencode

from core.db.keyset_pagination import KeysetPage
from core.db.replica import has_recent_write, iterate_replica, read_from_replica
from personas.audit.audited_export import audited_file_response
from personas.audit.descriptions import list_field_changes
from personas.audit.forms import AuditFilterForm
from personas.audit.selectors import AuditFilter, filter_audit_events, get_audit_page
from personas.erasure.services import TOMBSTONE
from personas.models import AuditEvent
from personas.roles import Permission, has_permission
from personas.selectors import list_audit_events
from personas.tenancy.middleware import WorkspaceRequest, require_reauthentication
from personas.ui.export import build_export_columns

AUDIT_EXPORT_COLUMNS = build_export_columns(
    ("pk", "at", "actor_label", "verb", "kind", "object_id", "object_label", "request_id")
)


def index(request: WorkspaceRequest) -> HttpResponse:
    form = AuditFilterForm(request.GET)
    page: KeysetPage[AuditEvent] = KeysetPage([], None)
    if form.is_valid():
        page = read_audit_page(request, form.to_filter())
    filters = {name: str(value) for name, value in request.GET.items() if value and name in form.fields}
    context = {
        "form": form,
        "page": page,
        "older": urlencode({**filters, "before": str(page.next_cursor)}) if page.next_cursor else "",
        "newest": urlencode(filters),
        "is_narrowed": bool(filters),
        "is_further": "before" in request.GET,
    }
    status = 200 if form.is_valid() else 422
    return render(request, "personas/audit/list.html", context, status=status)


def read_audit_page(request: WorkspaceRequest, filters: AuditFilter) -> KeysetPage[AuditEvent]:
    before = parse_event_cursor(request.GET.get("before", ""))
    return read_from_replica(
        lambda alias: get_audit_page(request.workspace, filters, before=before, using=alias),
        fresh=has_recent_write(request),
    )


def audit_event_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    event = get_object_or_404(list_audit_events(request.workspace), pk=key)
    # Events about API keys contain the scopes of the keys. Only members who may manage keys may see these.
    is_hidden = event.kind == "key" and not has_permission(request.membership.role, Permission.MANAGE_KEYS)
    is_erased = TOMBSTONE in (event.before, event.after)
    changes = [] if is_hidden or is_erased else list_field_changes(event.before, event.after)
    context = {
        "event": event,
        "changed": [change for change in changes if not change.is_same],
        "same": [change for change in changes if change.is_same],
        "is_hidden": is_hidden,
        "is_erased": is_erased,
    }
    return render(request, "personas/audit/event.html", context)


@require_reauthentication
def export(request: WorkspaceRequest) -> HttpResponseBase:
    form = AuditFilterForm(request.GET)
    if not form.is_valid():
        return redirect("audit", request.workspace.slug)
    rows = filter_audit_events(request.workspace, form.to_filter())
    return audited_file_response(
        request, "audit-log", AUDIT_EXPORT_COLUMNS, iterate_replica(rows, fresh=has_recent_write(request))
    )


def parse_event_cursor(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


urlpatterns: list[URLPattern] = [
    path("", index, name="audit"),
    path("export/", export, name="audit-export"),
    path("<int:key>/", audit_event_view, name="audit-event"),
]
