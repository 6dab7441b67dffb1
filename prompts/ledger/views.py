"""The ledger: every prompt that was handed out, and the bots that hold an old one."""

from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.http import urlencode

from core.db.replica import just_wrote, read_aside, rows_aside
from personas.audit.audited_export import noted_file
from personas.models import ApiKey
from personas.tenancy.middleware import WorkspaceRequest, freshly_signed_in
from personas.ui.export import columns_of
from prompts.ledger.forms import LedgerForm
from prompts.ledger.selectors import LedgerPage, ledger_page, ledger_rows
from prompts.ledger.stale_bots import stale_bots
from prompts.models import PromptVersion
from prompts.replay.forms import Choices
from prompts.replay.selectors import agent_choices, channel_choices

SHOWN_STALE = 50
# What the calls said of themselves stays here: it may be personal.
COLUMNS = columns_of(
    (
        "pk",
        "at",
        "prompt__agent__slug",
        "prompt__channel__slug",
        "version__number",
        "label",
        "reader_label",
        "status",
        "size",
        "served_digest",
        "request_id",
    )
)


def index(request: WorkspaceRequest) -> HttpResponse:
    form = filters(request)
    # Strange values narrow nothing down; they are told under their field.
    page = found(request, form) if form.is_valid() else LedgerPage([], None)
    said = {name: str(value) for name, value in request.GET.items() if value and name in form.fields}
    context = {
        "form": form,
        "page": page,
        "older": urlencode({**said, "before": str(page.next_cursor)}) if page.next_cursor else "",
        "newest": urlencode(said),
        "is_narrowed": bool(said),
        "is_further": "before" in request.GET,
    }
    return render(request, "prompts/ledger/list.html", context, status=200 if form.is_valid() else 422)


@freshly_signed_in
def export(request: WorkspaceRequest) -> HttpResponseBase:
    form = filters(request)
    if not form.is_valid():
        return redirect("ledger:list", request.workspace.slug)
    wanted = form.wanted(version_id(request, form.cleaned_data))
    rows = ledger_rows(request.workspace, wanted)
    return noted_file(request, "ledger", COLUMNS, rows_aside(rows, fresh=just_wrote(request)))


def filters(request: WorkspaceRequest) -> LedgerForm:
    workspace = request.workspace
    return LedgerForm(
        request.GET,
        agents=agent_choices(workspace),
        channels=channel_choices(workspace),
        keys=key_choices(request),
    )


def key_choices(request: WorkspaceRequest) -> Choices:
    rows = ApiKey.objects.in_workspace(request.workspace).order_by("name").values_list("pk", "name")
    return [(str(key), name) for key, name in rows]


def found(request: WorkspaceRequest, form: LedgerForm) -> LedgerPage:
    wanted = form.wanted(version_id(request, form.cleaned_data))
    before = cursor(request.GET.get("before", ""))
    return read_aside(
        lambda alias: ledger_page(request.workspace, wanted, before=before, using=alias),
        fresh=just_wrote(request),
    )


def version_id(request: WorkspaceRequest, said: dict[str, Any]) -> int | None:
    """The id behind a number; nought, which no version has, for a number that was never reached."""
    if not said["version"]:
        return None
    rows = PromptVersion.objects.in_workspace(request.workspace).filter(
        prompt__agent__slug=said["agent"], prompt__channel__slug=said["channel"], number=said["version"]
    )
    return rows.values_list("pk", flat=True).first() or 0


def cursor(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 19 else None


def stale(request: WorkspaceRequest) -> HttpResponse:
    """Bots behind: as a page, or as a panel of the list."""
    bots = read_aside(lambda alias: stale_bots(request.workspace, using=alias), fresh=just_wrote(request))
    context = {"bots": bots[:SHOWN_STALE], "count": len(bots), "more": max(0, len(bots) - SHOWN_STALE)}
    name = "_stale" if getattr(request, "htmx", None) else "stale"
    return render(request, f"prompts/ledger/{name}.html", context)


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("export/", export, name="export"),
    path("stale/", stale, name="stale"),
]
urls = (urlpatterns, "ledger")
