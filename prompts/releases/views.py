"""Releases: asked for, looked at, decided."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.errors import DomainError, Invalid
from personas.records.views import asked
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.models import Release, ReleaseItem, ReleaseStatus
from prompts.page_lookup import LARGEST, found_release
from prompts.preview.review import approvers_of, review_of_release
from prompts.releases import action_views
from prompts.releases.changes import changes_in
from prompts.releases.forms import ReasonForm, ReleaseForm, choice_of, ticked
from prompts.releases.selectors import changed_since, items_of, releasable, releases_of, reviewed
from prompts.releases.services import request_release

PAGE_SIZE = 25
# A form has room for no more; the rest is reached by choosing an agent.
MOST_CHOICES = 400
OPEN = (ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
SHELVES = [("", _("All")), ("open", _("Open")), *ReleaseStatus.choices]


def index(request: WorkspaceRequest) -> HttpResponse:
    status = request.GET.get("status", "")
    known = status if status in dict(SHELVES) else ""
    rows = releases_of(request.workspace)
    if known:
        rows = rows.filter(status__in=OPEN if known == "open" else [known])
    context = {
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "shelves": SHELVES,
        "status": known,
        "waiting": releasable(request.workspace).count(),
    }
    return render(request, "prompts/releases/list.html", context)


@needs(Permission.EDIT)
def new(request: WorkspaceRequest) -> HttpResponse:
    agent, picked = asked(request, "agent")[:64], picked_ids(request)
    every = releasable(request.workspace)
    narrowed = every.filter(pk__in=picked) if picked else every
    rows = list((narrowed.filter(agent__slug=agent) if agent else narrowed)[: MOST_CHOICES + 1])
    form = ReleaseForm(said(request) if request.method == "POST" else None, rows=rows[:MOST_CHOICES])
    if request.method == "POST" and form.is_valid():
        release = requested(request, form)
        if release is not None:
            messages.success(request, gettext("%(release)s is requested.") % {"release": release})
            return redirect("releases:detail", request.workspace.slug, release.number)
    context = {"form": form, "agent": agent, "is_cut": len(rows) > MOST_CHOICES, "agents": agents_in(every)}
    context |= {
        "choices": choices(request, form.rows),
        "picked": len(picked),
        "left": len(picked) - len(rows),
    }
    return render(request, "prompts/releases/new.html", context, status=422 if form.errors else 200)


def picked_ids(request: WorkspaceRequest) -> list[int]:
    """Prompts that were picked elsewhere, on the fleet; what is no id of ours picks nothing."""
    words = asked(request, "prompts").split(",")[:MOST_CHOICES]
    ids = {int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 11}
    return sorted(key for key in ids if key <= LARGEST)


def said(request: WorkspaceRequest) -> QueryDict:
    """What was ticked, or all that was shown."""
    data = request.POST.copy()
    if "everything" in data:
        data.setlist("prompts", data.getlist("shown"))
    return data


def requested(request: WorkspaceRequest, form: ReleaseForm) -> Release | None:
    try:
        return request_release(
            request.workspace, form.chosen(), message=form.cleaned_data["message"], by=request.actor
        )
    except Invalid as error:
        form.take_errors(error)
    except DomainError as error:
        form.add_error(None, error.message)
    return None


def choices(request: WorkspaceRequest, rows: Any) -> list[dict[str, Any]]:
    """The prompts with a box each; what was ticked stays ticked, and what was picked elsewhere is."""
    is_picked = request.method != "POST" and "prompts" in request.GET
    chosen = ticked(map(choice_of, rows) if is_picked else request.POST.getlist("prompts"))
    return [choice(row, chosen) for row in rows]


def choice(row: Any, chosen: set[str]) -> dict[str, Any]:
    before = row.production_tokens
    return {
        "prompt": row,
        "value": choice_of(row),
        "is_ticked": choice_of(row) in chosen,
        "delta": None if before is None else row.latest.tokens - before,
    }


def agents_in(rows: Any) -> list[tuple[str, str]]:
    """The agents that have something to release."""
    return list(rows.order_by("agent__name").values_list("agent__slug", "agent__name").distinct()[:200])


def detail(request: WorkspaceRequest, number: int) -> HttpResponse:
    release = found_release(request, number)
    items = items_of(release)
    changes = changes_in(request.workspace, items)
    context = {
        "release": release,
        "items": items,
        "review": review_of_release(request.workspace, changes),
        "changes": changes,
        "reviewed": reviewed(items),
        "reject_form": ReasonForm(auto_id="reject_%s"),
        "override_form": ReasonForm(auto_id="override_%s"),
    }
    return render(request, "prompts/releases/detail.html", context | standing(request, release, items))


def standing(request: WorkspaceRequest, release: Release, items: Sequence[ReleaseItem]) -> dict[str, Any]:
    """How far it has come, and what may happen to it next."""
    is_open = release.status in OPEN
    is_approved = release.status == ReleaseStatus.APPROVED
    is_asking = release.status == ReleaseStatus.REQUESTED and bool(reviewed(items))
    return {
        "approvers": approvers_of(request.workspace, release.requested_by) if is_asking else [],
        "is_open": is_open,
        "is_own": release.requested_by_id == request.user.pk,
        "may_go": is_open and (is_approved or not reviewed(items)),
        "outdated": changed_since(items) if is_open else [],
        # Whoever releases without an approval decides at that very moment, not before it.
        "was_approved": is_approved or is_before(release.decided_at, release.released_at),
    }


def is_before(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and one < other


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("new/", new, name="new"),
    path("<int:number>/", detail, name="detail"),
    *action_views.urlpatterns,
]
urls = (urlpatterns, "releases")
