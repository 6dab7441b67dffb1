"""Keys: which there are, a new one, its successor, its end. A secret is in one answer and nowhere else."""

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
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from personas.api_keys.descriptions import address, example
from personas.api_keys.forms import EndingForm, KeyForm, RotateForm
from personas.api_keys.models import KINDS
from personas.api_keys.selectors import (
    active_keys,
    ended_keys,
    example_for,
    keys_of,
    may_rotate,
    powers_of,
    shown,
)
from personas.api_keys.services import create_key, next_name, revoke_key, rotate_key
from personas.audit.audited_export import noted_file
from personas.errors import DomainError, Invalid
from personas.models import ApiKey, AuditEvent
from personas.records.bulk_views import BulkVerb, chosen_ids, on_each, tell
from personas.records.views import asked
from personas.roles import Permission, may
from personas.tenancy.middleware import WorkspaceRequest, freshly_signed_in, needs, wanting
from personas.ui.display_names import title_of
from personas.ui.export import Column, columns_of
from personas.ui.responses import back_or
from personas.ui.sorting import in_order, sorting_asked

PAGE_SIZE = 50
SHOWN_EVENTS = 20
SHELVES = [("", gettext_lazy("Active")), ("ended", gettext_lazy("Ended")), ("all", gettext_lazy("All"))]
ANY_KIND = [("", gettext_lazy("Both kinds")), *KINDS]
REVOKE = BulkVerb(
    "revoke",
    gettext_lazy("Revoke…"),
    gettext_lazy("Revoked"),
    icon="x",
    tone="error",
    permission=Permission.MANAGE_KEYS,
)
# What is known of a key; its digest is nobody's business.
COLUMNS = [
    *columns_of(("name", "kind", "prefix")),
    Column("state", lambda key: shown(key).state),
    Column("may", lambda key: shown(key).verbs),
    Column("limits", lambda key: shown(key).limits),
    *columns_of(("created_label", "created_at", "expires_at", "last_used_at", "revoked_at")),
]


SORTS = {
    "name": ("name",),
    "maker": ("created_label", "created_at"),
    "made": ("created_at",),
    "expires": ("expires_at",),
    "used": ("last_used_at",),
}


def index(request: WorkspaceRequest) -> HttpResponse:
    refuse_others(request)
    words, shelf, kind = asked(request, "q").strip()[:80], asked(request, "shelf"), asked(request, "kind")
    page = Paginator(found_keys(request), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "sorting": sorting_asked(request, SORTS),
        "bulk": [{"verb": REVOKE, "url": reverse("keys:bulk", args=[request.workspace.slug])}]
        if shelf != "ended"
        else [],
        "page": page,
        "keys": [shown(key) for key in page.object_list],
        "q": words,
        "filters": [
            {"name": "shelf", "label": _("Show"), "options": SHELVES, "value": shelf},
            {"name": "kind", "label": _("Kind"), "options": ANY_KIND, "value": kind},
        ],
        "is_narrowed": bool(words or shelf or kind),
    }
    return render(request, "personas/keys/list.html", context)


def found_keys(request: WorkspaceRequest) -> QuerySet[ApiKey]:
    """The keys that the address asks for, in its order."""
    words, shelf, kind = asked(request, "q").strip()[:80], asked(request, "shelf"), asked(request, "kind")
    rows = narrowed(keys_of(request.workspace), words, shelf, kind)
    return in_order(rows, sorting_asked(request, SORTS), SORTS)


@freshly_signed_in
def export(request: WorkspaceRequest) -> HttpResponseBase:
    refuse_others(request)
    return noted_file(request, "keys", COLUMNS, found_keys(request))


@needs(Permission.MANAGE_KEYS)
@freshly_signed_in
@require_POST
def bulk(request: WorkspaceRequest) -> HttpResponse:
    """Many keys at once: first a page that names them and asks, then the end of them."""
    ids = chosen_ids(request.POST.getlist("chosen"))
    rows = list(active_keys(keys_of(request.workspace)).filter(pk__in=ids).order_by("name"))
    back = back_or(request, reverse("keys:list", args=[request.workspace.slug]))
    if not rows:
        messages.error(request, _("Tick active keys first, then press the button."))
        return redirect(back)
    if "sure" not in request.POST:
        context = {"keys": [shown(key) for key in rows], "back": back}
        return render(request, "personas/keys/revoke_many.html", context)
    tell(request, on_each(rows, lambda key: revoke_key(key, by=request.actor)), str(REVOKE.done))
    return redirect(back)


def detail(request: WorkspaceRequest, key: int) -> HttpResponse:
    refuse_others(request)
    row = found(request, key)
    powers = powers_of(row)
    events = AuditEvent.objects.in_workspace(request.workspace).filter(kind="key", object_id=row.pk)
    context = {
        "shown": shown(row),
        "powers": [title_of(one.value).lower() for one in Permission if one in powers],
        "scopes": [
            (title_of(name), row.scopes[name])
            for name in ("agents", "channels", "labels")
            if row.scopes.get(name)
        ],
        "events": events.order_by("-pk")[:SHOWN_EVENTS],
        "may_rotate": may_rotate(row, request.user),
    }
    return render(request, "personas/keys/detail.html", context)


@needs(Permission.MANAGE_KEYS)
@freshly_signed_in
@sensitive_variables("secret")
def new(request: WorkspaceRequest) -> HttpResponse:
    form = KeyForm(request.POST if request.method == "POST" else None, workspace=request.workspace)
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        try:
            key, secret = create_key(
                request.workspace,
                said["name"],
                form.scopes(),
                said["expires_at"],
                by=request.actor,
                kind=said["kind"],
            )
        except DomainError as error:
            refused(form, error)
        else:
            return show_once(request, key, secret)
    status = 422 if form.errors else 200
    return render(request, "personas/keys/new.html", {"form": form}, status=status)


@needs(Permission.MANAGE_KEYS)
@freshly_signed_in
@sensitive_variables("secret")
def rotate(request: WorkspaceRequest, key: int) -> HttpResponse:
    row = found(request, key)
    form = RotateForm(
        request.POST if request.method == "POST" else None,
        # A page that is sent twice names the same successor twice, and the second is refused.
        initial={"name": next_name(row)},
    )
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        ends_at = timezone.now() + timedelta(hours=said["hours"])
        try:
            successor, secret = rotate_key(
                row, ends_at=ends_at, expires_at=said["expires_at"], name=said["name"], by=request.actor
            )
        except DomainError as error:
            refused(form, error)
        else:
            row.refresh_from_db()
            return show_once(request, successor, secret, before=row)
    context = {"form": form, "shown": shown(row), "may_rotate": may_rotate(row, request.user)}
    return render(request, "personas/keys/rotate.html", context, status=422 if form.errors else 200)


@needs(Permission.MANAGE_KEYS)
@freshly_signed_in
def revoke(request: WorkspaceRequest, key: int) -> HttpResponse:
    """The page asks whether it is meant; the button on it does it."""
    row = found(request, key)
    if request.method == "POST":
        revoke_key(row, by=request.actor)
        messages.success(request, _("“%(key)s” is revoked: it is refused from now on.") % {"key": row})
        return redirect("keys:list", request.workspace.slug)
    return render(request, "personas/keys/revoke.html", {"shown": shown(row)})


@sensitive_variables("secret")
def show_once(
    request: WorkspaceRequest, key: ApiKey, secret: str, before: ApiKey | None = None
) -> HttpResponse:
    """The only answer that a secret is ever in; no cache keeps it, and going back does not bring it up."""
    agent, channel = example_for(key)
    context: dict[str, Any] = {
        "shown": shown(key),
        "secret": secret,
        "before": before,
        "example": example(address(settings.PUBLIC_URL, key, agent, channel), secret),
        "has_example": bool(agent),
    }
    answer = render(request, "personas/keys/secret.html", context)
    answer["Cache-Control"] = "no-store"
    return answer


def refused(form: EndingForm, error: DomainError) -> None:
    if isinstance(error, Invalid):
        form.take_errors(error)
    else:
        form.add_error(None, error.message)


def refuse_others(request: WorkspaceRequest) -> None:
    """To look is for those who manage keys, too."""
    if not may(request.membership.role, Permission.MANAGE_KEYS):
        raise PermissionDenied(wanting(Permission.MANAGE_KEYS))


def found(request: WorkspaceRequest, key: int) -> ApiKey:
    return get_object_or_404(keys_of(request.workspace), pk=key)


def narrowed(rows: QuerySet[ApiKey], words: str, shelf: str, kind: str) -> QuerySet[ApiKey]:
    if words:
        rows = rows.filter(Q(name__icontains=words) | Q(prefix__startswith=words))
    if kind in dict(KINDS):
        rows = rows.filter(kind=kind)
    if shelf == "all":
        return rows
    return ended_keys(rows) if shelf == "ended" else active_keys(rows)


urls = (
    [
        path("", index, name="list"),
        path("new/", new, name="new"),
        path("export/", export, name="export"),
        path("bulk/", bulk, name="bulk"),
        path("<int:key>/", detail, name="detail"),
        path("<int:key>/rotate/", rotate, name="rotate"),
        path("<int:key>/revoke/", revoke, name="revoke"),
    ],
    "keys",
)
