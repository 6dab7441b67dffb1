"""Pages of API keys: list, create, rotate, revoke. A secret is displayed once and never stored."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from personas.api_keys.descriptions import build_example_url, build_usage_example
from personas.api_keys.forms import KeyExpiryForm, KeyForm, RotateKeyForm
from personas.api_keys.models import KEY_KINDS
from personas.api_keys.selectors import (
    build_key_summary,
    can_rotate_key,
    filter_active_keys,
    filter_ended_keys,
    find_example_target,
    get_key_permissions,
    list_created_keys,
    list_keys,
)
from personas.api_keys.services import (
    create_key,
    get_next_key_name,
    revoke_key,
    revoke_key_with_created,
    rotate_key,
)
from personas.audit.audited_export import audited_file_response
from personas.errors import DomainError, InvalidInput
from personas.models import ApiKey, AuditEvent
from personas.records.bulk_views import BulkAction, apply_to_rows, parse_row_ids, show_bulk_result
from personas.records.views import get_query_param
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import (
    WorkspaceRequest,
    describe_required_roles,
    require_permission,
    require_reauthentication,
)
from personas.ui.display_names import get_display_name
from personas.ui.export import ExportColumn, build_export_columns
from personas.ui.responses import get_back_url
from personas.ui.review import NotReviewed
from personas.ui.sorting import get_sort_order, sort_rows

NOT_REVIEWED = NotReviewed("API keys")

PAGE_SIZE = 50
MAX_EVENTS = 20
STATE_FILTER_CHOICES = [
    ("", gettext_lazy("Active")),
    ("ended", gettext_lazy("Expired or revoked")),
    ("all", gettext_lazy("All")),
]
KIND_FILTER_CHOICES = [("", gettext_lazy("All kinds")), *KEY_KINDS]
REVOKE_KEYS_ACTION = BulkAction(
    "revoke",
    gettext_lazy("Revoke…"),
    gettext_lazy("Revoked"),
    icon="x",
    tone="error",
    permission=Permission.MANAGE_KEYS,
)
# Columns of the key export: all fields of a key except its digest.
KEY_EXPORT_COLUMNS = [
    *build_export_columns(("name", "kind", "prefix")),
    ExportColumn("state", lambda key: build_key_summary(key).state),
    ExportColumn("may", lambda key: build_key_summary(key).verbs),
    ExportColumn("limits", lambda key: build_key_summary(key).limits),
    *build_export_columns(("created_label", "created_at", "expires_at", "last_used_at", "revoked_at")),
]


KEY_SORTS = {
    "name": ("name",),
    "maker": ("created_label", "created_at"),
    "made": ("created_at",),
    "expires": ("expires_at",),
    "used": ("last_used_at",),
}


def index(request: WorkspaceRequest) -> HttpResponse:
    require_key_manager(request)
    text, state, kind = (
        get_query_param(request, "q").strip()[:80],
        get_query_param(request, "shelf"),
        get_query_param(request, "kind"),
    )
    page = Paginator(list_filtered_keys(request), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "sorting": get_sort_order(request, KEY_SORTS),
        "bulk": [{"verb": REVOKE_KEYS_ACTION, "url": reverse("api-keys:bulk", args=[request.workspace.slug])}]
        if state != "ended"
        else [],
        "page": page,
        "keys": [build_key_summary(key) for key in page.object_list],
        "q": text,
        "filters": [
            {"name": "shelf", "label": _("Show"), "options": STATE_FILTER_CHOICES, "value": state},
            {"name": "kind", "label": _("Kind"), "options": KIND_FILTER_CHOICES, "value": kind},
        ],
        "is_narrowed": bool(text or state or kind),
    }
    return render(request, "personas/api_keys/list.html", context)


def list_filtered_keys(request: WorkspaceRequest) -> QuerySet[ApiKey]:
    """Return the keys that match the filters in the query string, in the sort order requested there."""
    text, state, kind = (
        get_query_param(request, "q").strip()[:80],
        get_query_param(request, "shelf"),
        get_query_param(request, "kind"),
    )
    rows = filter_keys(list_keys(request.workspace), text, state, kind)
    return sort_rows(rows, get_sort_order(request, KEY_SORTS), KEY_SORTS)


@require_reauthentication
def export(request: WorkspaceRequest) -> HttpResponseBase:
    require_key_manager(request)
    return audited_file_response(request, "keys", KEY_EXPORT_COLUMNS, list_filtered_keys(request))


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_reauthentication
@require_POST
def revoke_keys_view(request: WorkspaceRequest) -> HttpResponse:
    """Revoke several keys after a confirmation page."""
    ids = parse_row_ids(request.POST.getlist("chosen"))
    rows = list(filter_active_keys(list_keys(request.workspace)).filter(pk__in=ids).order_by("name"))
    back = get_back_url(request, reverse("api-keys:list", args=[request.workspace.slug]))
    if not rows:
        messages.error(request, _("Select at least one active key."))
        return redirect(back)
    if "sure" not in request.POST:
        context = {"keys": [build_key_summary(key) for key in rows], "back": back}
        return render(request, "personas/api_keys/revoke_many.html", context)
    show_bulk_result(
        request,
        apply_to_rows(rows, lambda key: revoke_key(key, by=request.actor)),
        str(REVOKE_KEYS_ACTION.done),
    )
    return redirect(back)


def detail(request: WorkspaceRequest, key: int) -> HttpResponse:
    require_key_manager(request)
    row = get_workspace_key(request, key)
    permissions = get_key_permissions(row)
    events = AuditEvent.objects.in_workspace(request.workspace).filter(kind="key", object_id=row.pk)
    context = {
        "summary": build_key_summary(row),
        "permissions": [
            get_display_name(permission.value).lower()
            for permission in Permission
            if permission in permissions
        ],
        "scopes": [
            (get_display_name(name), row.scopes[name])
            for name in ("agents", "channels", "labels")
            if row.scopes.get(name)
        ],
        "events": events.order_by("-pk")[:MAX_EVENTS],
        "may_rotate": can_rotate_key(row, request.user),
    }
    return render(request, "personas/api_keys/detail.html", context)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_reauthentication
@sensitive_variables("secret")
def new(request: WorkspaceRequest) -> HttpResponse:
    form = KeyForm(request.POST if request.method == "POST" else None, workspace=request.workspace)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            key, secret = create_key(
                request.workspace,
                values["name"],
                form.scopes(),
                values["expires_at"],
                by=request.actor,
                kind=values["kind"],
            )
        except DomainError as error:
            add_form_errors(form, error)
        else:
            return render_secret_once(request, key, secret)
    status = 422 if form.errors else 200
    return render(request, "personas/api_keys/new.html", {"form": form}, status=status)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_reauthentication
@sensitive_variables("secret")
def rotate_key_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    row = get_workspace_key(request, key)
    form = RotateKeyForm(
        request.POST if request.method == "POST" else None,
        # The form contains the name of the new key. If it is submitted twice, the duplicate name is rejected.
        initial={"name": get_next_key_name(row)},
    )
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        ends_at = timezone.now() + timedelta(hours=values["hours"])
        try:
            successor, secret = rotate_key(
                row, ends_at=ends_at, expires_at=values["expires_at"], name=values["name"], by=request.actor
            )
        except DomainError as error:
            add_form_errors(form, error)
        else:
            row.refresh_from_db()
            return render_secret_once(request, successor, secret, before=row)
    context = {
        "form": form,
        "summary": build_key_summary(row),
        "may_rotate": can_rotate_key(row, request.user),
    }
    return render(request, "personas/api_keys/rotate.html", context, status=422 if form.errors else 200)


@require_permission(Permission.MANAGE_KEYS, NOT_REVIEWED)
@require_reauthentication
def revoke_key_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    """Show the confirmation page on GET and revoke the key on POST."""
    row = get_workspace_key(request, key)
    if request.method == "POST" and request.POST.get("with_created"):
        revoked = revoke_key_with_created(row, by=request.actor)
        messages.success(
            request,
            ngettext("%(count)s key revoked.", "%(count)s keys revoked.", len(revoked))
            % {"count": len(revoked)},
        )
        return redirect("api-keys:list", request.workspace.slug)
    if request.method == "POST":
        revoke_key(row, by=request.actor)
        messages.success(
            request, _("“%(key)s” revoked. Requests that use it are now rejected.") % {"key": row}
        )
        return redirect("api-keys:list", request.workspace.slug)
    context = {"summary": build_key_summary(row), "created_keys": list_created_keys(row)}
    return render(request, "personas/api_keys/revoke.html", context)


@sensitive_variables("secret")
def render_secret_once(
    request: WorkspaceRequest, key: ApiKey, secret: str, before: ApiKey | None = None
) -> HttpResponse:
    """Render the page that shows a new key's secret; no other page contains it.

    The header `Cache-Control: no-store` keeps the page out of caches and the browser history.
    """
    agent, channel = find_example_target(key)
    context: dict[str, Any] = {
        "summary": build_key_summary(key),
        "secret": secret,
        "before": before,
        "example": build_usage_example(build_example_url(settings.PUBLIC_URL, key, agent, channel), secret),
        "has_example": bool(agent),
    }
    response = render(request, "personas/api_keys/secret.html", context)
    response["Cache-Control"] = "no-store"
    return response


def add_form_errors(form: KeyExpiryForm, error: DomainError) -> None:
    if isinstance(error, InvalidInput):
        form.add_service_errors(error)
    else:
        form.add_error(None, error.message)


def require_key_manager(request: WorkspaceRequest) -> None:
    """Raise PermissionDenied unless the member may manage keys. Pages that only show keys need this too."""
    if not has_permission(request.membership.role, Permission.MANAGE_KEYS):
        raise PermissionDenied(describe_required_roles(Permission.MANAGE_KEYS))


def get_workspace_key(request: WorkspaceRequest, key: int) -> ApiKey:
    return get_object_or_404(list_keys(request.workspace), pk=key)


def filter_keys(rows: QuerySet[ApiKey], text: str, state: str, kind: str) -> QuerySet[ApiKey]:
    if text:
        rows = rows.filter(Q(name__icontains=text) | Q(prefix__startswith=text))
    if kind in dict(KEY_KINDS):
        rows = rows.filter(kind=kind)
    if state == "all":
        return rows
    return filter_ended_keys(rows) if state == "ended" else filter_active_keys(rows)


urls = (
    [
        path("", index, name="list"),
        path("new/", new, name="new"),
        path("export/", export, name="export"),
        path("bulk/", revoke_keys_view, name="bulk"),
        path("<int:key>/", detail, name="detail"),
        path("<int:key>/rotate/", rotate_key_view, name="rotate"),
        path("<int:key>/revoke/", revoke_key_view, name="revoke"),
    ],
    "api-keys",
)
