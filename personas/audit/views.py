"""The audit log: who did what, when; one event with what was before and after; the whole as a file."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils.http import urlencode

from core.db.replica import just_wrote, read_aside, rows_aside
from personas.audit.audited_export import noted_file
from personas.audit.descriptions import field_changes
from personas.audit.forms import AuditForm
from personas.audit.selectors import AuditFilter, AuditPage, audit_page, audit_rows
from personas.erasure.services import TOMBSTONE
from personas.roles import Permission, may
from personas.selectors import audit_of
from personas.tenancy.middleware import WorkspaceRequest, freshly_signed_in
from personas.ui.export import columns_of

COLUMNS = columns_of(("pk", "at", "actor_label", "verb", "kind", "object_id", "object_label", "request_id"))


def index(request: WorkspaceRequest) -> HttpResponse:
    form = AuditForm(request.GET)
    page = AuditPage([], None)
    if form.is_valid():
        page = page_aside(request, form.wanted())
    said = {name: str(value) for name, value in request.GET.items() if value and name in form.fields}
    context = {
        "form": form,
        "page": page,
        "older": urlencode({**said, "before": str(page.next_cursor)}) if page.next_cursor else "",
        "newest": urlencode(said),
        "is_narrowed": bool(said),
        "is_further": "before" in request.GET,
    }
    status = 200 if form.is_valid() else 422
    return render(request, "personas/audit/list.html", context, status=status)


def page_aside(request: WorkspaceRequest, wanted: AuditFilter) -> AuditPage:
    before = cursor(request.GET.get("before", ""))
    return read_aside(
        lambda alias: audit_page(request.workspace, wanted, before=before, using=alias),
        fresh=just_wrote(request),
    )


def event(request: WorkspaceRequest, key: int) -> HttpResponse:
    found = get_object_or_404(audit_of(request.workspace), pk=key)
    # What a key may do is shown to those who may see keys.
    is_hidden = found.kind == "key" and not may(request.membership.role, Permission.MANAGE_KEYS)
    is_erased = TOMBSTONE in (found.before, found.after)
    changes = [] if is_hidden or is_erased else field_changes(found.before, found.after)
    context = {
        "event": found,
        "changed": [change for change in changes if not change.is_same],
        "same": [change for change in changes if change.is_same],
        "is_hidden": is_hidden,
        "is_erased": is_erased,
    }
    return render(request, "personas/audit/event.html", context)


@freshly_signed_in
def export(request: WorkspaceRequest) -> HttpResponseBase:
    form = AuditForm(request.GET)
    if not form.is_valid():
        return redirect("audit", request.workspace.slug)
    rows = audit_rows(request.workspace, form.wanted())
    return noted_file(request, "audit-log", COLUMNS, rows_aside(rows, fresh=just_wrote(request)))


def cursor(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 19 else None


urlpatterns: list[URLPattern] = [
    path("", index, name="audit"),
    path("export/", export, name="audit-export"),
    path("<int:key>/", event, name="audit-event"),
]
