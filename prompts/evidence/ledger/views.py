"""Pages of the ledger: list of served prompts, export of that list, and outdated bots."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.http import urlencode
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from core.db.keyset_pagination import KeysetPage
from core.db.replica import has_recent_write, iterate_replica, read_from_replica
from personas.audit.audited_export import audited_file_response
from personas.errors import InvalidInput
from personas.limits.storage_quota import get_stored_today
from personas.models import ApiKey, Workspace
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission, require_reauthentication
from personas.ui.export import build_export_columns
from personas.ui.review import NotReviewed
from prompts.evidence.ledger.forms import LedgerFilterForm
from prompts.evidence.ledger.outdated_bots import OutdatedBot, find_outdated_fetches, load_outdated_bots
from prompts.evidence.ledger.outdated_history import count_outdated_by_day
from prompts.evidence.ledger.retention import set_ledger_retention
from prompts.evidence.ledger.selectors import get_ledger_page, list_ledger_entries
from prompts.evidence.replay.forms import Choices
from prompts.evidence.replay.selectors import list_agent_choices, list_channel_choices
from prompts.models import LedgerEntry, PromptVersion

MAX_SHOWN_BOTS = 50
# The slots of the calls are not exported: they may contain personal data.
EXPORT_COLUMNS = build_export_columns(
    (
        "pk",
        "at",
        "prompt__agent__slug",
        "prompt__channel__slug",
        "version__number",
        "skill",
        "label",
        "reader_label",
        "status",
        "size",
        "served_digest",
        "request_id",
        "traceparent",
    )
)


def index(request: WorkspaceRequest) -> HttpResponse:
    form = build_ledger_form(request)
    # If the filters are invalid, the page shows the form errors and no rows.
    page = get_filtered_page(request, form) if form.is_valid() else KeysetPage([], None)
    filters = {name: str(value) for name, value in request.GET.items() if value and name in form.fields}
    context = {
        "form": form,
        "page": page,
        "older": urlencode({**filters, "before": str(page.next_cursor)}) if page.next_cursor else "",
        "newest": urlencode(filters),
        "is_narrowed": bool(filters),
        "is_further": "before" in request.GET,
        "call_bytes": get_stored_today(request.workspace.pk),
        "call_quota": settings.DRAMATIS_CALL_BYTES_PER_DAY,
    }
    return render(request, "prompts/ledger/list.html", context, status=200 if form.is_valid() else 422)


@require_reauthentication
def export(request: WorkspaceRequest) -> HttpResponseBase:
    form = build_ledger_form(request)
    if not form.is_valid():
        return redirect("ledger:list", request.workspace.slug)
    filters = form.get_filter(find_version_id(request, form.cleaned_data))
    rows = list_ledger_entries(request.workspace, filters)
    return audited_file_response(
        request, "ledger", EXPORT_COLUMNS, iterate_replica(rows, fresh=has_recent_write(request))
    )


def build_ledger_form(request: WorkspaceRequest) -> LedgerFilterForm:
    workspace = request.workspace
    return LedgerFilterForm(
        request.GET,
        agents=list_agent_choices(workspace),
        channels=list_channel_choices(workspace),
        keys=list_key_choices(request),
    )


def list_key_choices(request: WorkspaceRequest) -> Choices:
    rows = ApiKey.objects.in_workspace(request.workspace).order_by("name").values_list("pk", "name")
    return [(str(key), name) for key, name in rows]


def get_filtered_page(request: WorkspaceRequest, form: LedgerFilterForm) -> KeysetPage[LedgerEntry]:
    filters = form.get_filter(find_version_id(request, form.cleaned_data))
    before = parse_ledger_cursor(request.GET.get("before", ""))
    return read_from_replica(
        lambda alias: get_ledger_page(request.workspace, filters, before=before, using=alias),
        fresh=has_recent_write(request),
    )


def find_version_id(request: WorkspaceRequest, data: dict[str, Any]) -> int | None:
    """Return the id of the version with the number in the form data.

    Return None if the form has no number, and 0, which matches no row, if there is no such version.
    """
    if not data["version"]:
        return None
    rows = PromptVersion.objects.in_workspace(request.workspace).filter(
        prompt__agent__slug=data["agent"], prompt__channel__slug=data["channel"], number=data["version"]
    )
    return rows.values_list("pk", flat=True).first() or 0


def parse_ledger_cursor(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def outdated_bots(request: WorkspaceRequest) -> HttpResponse:
    """Show outdated bots: as a page, or for htmx requests as a panel of the ledger page.

    With `?history=1`, the response to htmx is the chart of the last days, which takes longer than the list.
    """
    if "history" in request.GET:
        return render_outdated_history(request)
    bots, count = read_from_replica(
        lambda alias: get_shown_bots(request.workspace, alias), fresh=has_recent_write(request)
    )
    context: dict[str, Any] = {"bots": bots, "count": count, "more": count - len(bots)}
    name = "_stale" if getattr(request, "htmx", None) else "stale"
    return render(request, f"prompts/ledger/{name}.html", context)


def render_outdated_history(request: WorkspaceRequest) -> HttpResponse:
    history = read_from_replica(
        lambda alias: count_outdated_by_day(request.workspace, using=alias), fresh=has_recent_write(request)
    )
    rows = list(zip(history.days, history.counts, strict=True))
    context = {"history": history, "history_rows": rows[::-1]}
    name = "_history" if getattr(request, "htmx", None) else "history"
    return render(request, f"prompts/ledger/{name}.html", context)


def get_shown_bots(workspace: Workspace, using: str) -> tuple[list[OutdatedBot], int]:
    """Return the outdated bots that a page shows, and the number of all of them."""
    fetches = find_outdated_fetches(workspace, using=using)
    return load_outdated_bots(workspace, fetches[:MAX_SHOWN_BOTS], using), len(fetches)


@require_permission(Permission.MANAGE_MEMBERS, NotReviewed("retention of the ledger"))
@require_POST
def edit_retention(request: WorkspaceRequest) -> HttpResponse:
    """Set how long the ledger is kept. The form is on the page of the workspace's settings."""
    text = request.POST.get("ledger_months", "").strip()
    try:
        months = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
        set_ledger_retention(request.workspace, months, by=request.actor)
    except InvalidInput as error:
        messages.error(request, " ".join(error.errors.get("ledger_months", [error.message])))
    else:
        text = ngettext(
            "The ledger is now kept for %(count)s month.",
            "The ledger is now kept for %(count)s months.",
            months,
        )
        messages.success(request, text % {"count": months})
    return redirect("workspace-settings", request.workspace.slug)


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("export/", export, name="export"),
    path("outdated/", outdated_bots, name="stale"),
    path("retention/", edit_retention, name="retention"),
]
urls = (urlpatterns, "ledger")
