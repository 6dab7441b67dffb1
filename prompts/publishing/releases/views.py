"""Pages for releases: list of releases, request form, and one release with its changes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.errors import DomainError, InvalidInput
from personas.records.views import MAX_MESSAGE_LENGTH, get_query_param
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.responses import REVIEWED_FIELD, create_review_token
from personas.ui.review import NotReviewed
from prompts.models import AgentPrompt, Release, ReleaseItem, ReleaseStatus
from prompts.page_lookup import MAX_URL_NUMBER, get_release_or_404
from prompts.publishing.comments.forms import CommentForm
from prompts.publishing.labels.services import can_move_labels
from prompts.publishing.releases import action_views
from prompts.publishing.releases.changes import group_release_changes
from prompts.publishing.releases.forms import (
    ReasonForm,
    ReleaseForm,
    ReviewersForm,
    get_checked_values,
    get_choice_value,
)
from prompts.publishing.releases.selectors import (
    ReleaseTimelineEntry,
    format_release_mark,
    get_release_mark,
    hash_release_items,
    list_outdated_items,
    list_possible_reviewers,
    list_releasable_prompts,
    list_release_items,
    list_release_reviewers,
    list_releases,
    list_reviewed_agents,
    list_timeline,
)
from prompts.publishing.releases.services import describe_own_part, request_release
from prompts.publishing.review.change_review import build_release_review, list_approvers
from prompts.publishing.review.services import hash_release_effect

PAGE_SIZE = 25
# Maximum number of prompts in the request form. Users filter by agent to see the others.
MAX_CHOICES = 400
OPEN_STATUSES = (ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
DECISION_VERBS = ("approved", "rejected", "changes requested")
STATUS_FILTERS = [("", _("All statuses")), ("open", _("Open")), *ReleaseStatus.choices]


def index(request: WorkspaceRequest) -> HttpResponse:
    status = request.GET.get("status", "")
    status_filter = status if status in dict(STATUS_FILTERS) else ""
    rows = list_releases(request.workspace)
    if status_filter:
        rows = rows.filter(status__in=OPEN_STATUSES if status_filter == "open" else [status_filter])
    context = {
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "status_filters": STATUS_FILTERS,
        "status": status_filter,
        "waiting": list_releasable_prompts(request.workspace).count(),
    }
    return render(request, "prompts/releases/list.html", context)


@require_permission(Permission.EDIT, NotReviewed("only publishing a release changes prompts"))
def new(request: WorkspaceRequest) -> HttpResponse:
    agent, picked_ids = get_query_param(request, "agent")[:64], parse_prompt_ids(request)
    releasable = list_releasable_prompts(request.workspace)
    narrowed = releasable.filter(pk__in=picked_ids) if picked_ids else releasable
    rows = list((narrowed.filter(agent__slug=agent) if agent else narrowed)[: MAX_CHOICES + 1])
    form = ReleaseForm(
        get_submitted_data(request) if request.method == "POST" else None,
        rows=rows[:MAX_CHOICES],
        members=list_possible_reviewers(request.workspace, request.user),
        initial={
            "message": get_query_param(request, "message")[:MAX_MESSAGE_LENGTH] or find_common_message(rows)
        },
    )
    if request.method == "POST" and form.is_valid():
        release = submit_release(request, form)
        if release is not None:
            messages.success(request, gettext("%(release)s requested.") % {"release": release})
            return redirect("releases:detail", request.workspace.slug, release.number)
    context = {
        "form": form,
        "agent": agent,
        "is_cut": len(rows) > MAX_CHOICES,
        "agents": list_agent_options(releasable),
    }
    context |= {
        "choices": list_prompt_choices(request, form.rows),
        "picked": len(picked_ids),
        # How many selected prompts are not listed; 0 if the list was cut, because this is then unknown.
        "left": len(picked_ids) - len(rows) if len(rows) <= MAX_CHOICES else 0,
    }
    return render(request, "prompts/releases/new.html", context, status=422 if form.errors else 200)


def find_common_message(prompts: Sequence[AgentPrompt]) -> str:
    """Return the message of the edit that created the versions, if all that have a message have the same."""
    found = {prompt.latest.message for prompt in prompts if prompt.latest and prompt.latest.message}
    return found.pop()[:MAX_MESSAGE_LENGTH] if len(found) == 1 else ""


def parse_prompt_ids(request: WorkspaceRequest) -> list[int]:
    """Parse the ids of prompts selected on the fleet page; invalid values are ignored."""
    values = get_query_param(request, "prompts").split(",")
    ids = {int(value) for value in values if value.isascii() and value.isdecimal() and len(value) < 11}
    return sorted(key for key in ids if key <= MAX_URL_NUMBER)


def get_submitted_data(request: WorkspaceRequest) -> QueryDict:
    """Return the form data. The button “everything” selects all prompts that the form showed."""
    data = request.POST.copy()
    if "everything" in data:
        data.setlist("prompts", data.getlist("shown"))
    return data


def submit_release(request: WorkspaceRequest, form: ReleaseForm) -> Release | None:
    try:
        return request_release(
            request.workspace,
            form.list_selected_prompts(),
            message=form.cleaned_data["message"],
            by=request.actor,
            reviewers=form.list_selected_members(),
        )
    except InvalidInput as error:
        form.add_service_errors(error)
    except DomainError as error:
        form.add_error(None, error.message)
    return None


def list_prompt_choices(request: WorkspaceRequest, rows: Any) -> list[dict[str, Any]]:
    """Return the checkboxes of the form.

    All are checked at first, and submitted values stay checked.
    """
    is_new = request.method != "POST"
    chosen = get_checked_values(map(get_choice_value, rows) if is_new else request.POST.getlist("prompts"))
    return [build_prompt_choice(row, chosen) for row in rows]


def build_prompt_choice(row: Any, chosen: set[str]) -> dict[str, Any]:
    before = row.production_tokens
    return {
        "prompt": row,
        "value": get_choice_value(row),
        "is_ticked": get_choice_value(row) in chosen,
        "delta": None if before is None else row.latest.tokens - before,
    }


def list_agent_options(rows: Any) -> list[tuple[str, str]]:
    """Return slug and name of the agents with releasable prompts."""
    return list(rows.order_by("agent__name").values_list("agent__slug", "agent__name").distinct()[:200])


def detail(request: WorkspaceRequest, number: int) -> HttpResponse:
    release = get_release_or_404(request, number)
    items = list_release_items(release)
    context = {
        "items": items,
        "reviewed": list_reviewed_agents(items),
        "reject_form": ReasonForm(auto_id="reject_%s"),
        "override_form": ReasonForm(auto_id="override_%s"),
        "changes_form": CommentForm(auto_id="changes_%s"),
        "comment_form": CommentForm(auto_id="comment_%s"),
        **get_review_context(request, release, items),
    }
    return render(
        request, "prompts/releases/detail.html", context | get_live_context(request, release, items)
    )


def get_review_context(
    request: WorkspaceRequest, release: Release, items: Sequence[ReleaseItem]
) -> dict[str, Any]:
    """Return what the comparison of the versions shows."""
    changes = group_release_changes(request.workspace, items, release.cache_prefixes)
    return {
        "review": build_release_review(request.workspace, changes),
        "changes": changes,
        "is_split": get_query_param(request, "view") == "split",
    }


def live_release(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Return the parts of the page that change with the release, or 204 if none has changed.

    The comparison is among them only if the versions were replaced. Forms with typed text are not.
    """
    release = get_release_or_404(request, number)
    if request.GET.get("seen") == get_release_mark(release):
        return HttpResponse(status=204)
    items = list_release_items(release)
    context = {"is_active": True, "reviewed": list_reviewed_agents(items), "items": items}
    if request.GET.get("items", "") not in ("", hash_release_items(items)):
        context |= get_review_context(request, release, items)
    return render(request, "prompts/releases/_live.html", context | get_live_context(request, release, items))


def get_live_context(
    request: WorkspaceRequest, release: Release, items: Sequence[ReleaseItem]
) -> dict[str, Any]:
    """Return what the changing parts of the page show."""
    reviewers = list_release_reviewers(release)
    asked = {reviewer.user_id for reviewer in reviewers}
    possible = list_possible_reviewers(request.workspace, release.requested_by)
    others = [member for member in possible if member.user_id not in asked]
    timeline = list_timeline(release)
    return {
        "release": release,
        "mark": format_release_mark(
            release,
            timeline[-1].event.pk if timeline else 0,
            max((item.prompt.latest_id or 0 for item in items), default=0),
        ),
        "items_hash": hash_release_items(items),
        "timeline": timeline,
        "change_request": find_change_request(timeline),
        "reviewers": [(reviewer, find_review(timeline, reviewer.user_id)) for reviewer in reviewers],
        "reviewers_form": ReviewersForm(members=others) if others else None,
        "token_field": REVIEWED_FIELD,
        "tokens": build_release_tokens(request, release, items),
        **get_release_context(request, release, items),
    }


def find_change_request(timeline: Sequence[ReleaseTimelineEntry]) -> ReleaseTimelineEntry | None:
    """Return the last request for changes, unless the release was approved after it."""
    decisions = [entry for entry in timeline if entry.event.verb in DECISION_VERBS]
    return decisions[-1] if decisions and decisions[-1].event.verb == "changes requested" else None


def find_review(timeline: Sequence[ReleaseTimelineEntry], user_id: int) -> str:
    """Return the verb of the last decision of a reviewer; empty if there is none."""
    verbs = [
        entry.event.verb
        for entry in timeline
        if entry.event.actor_id == user_id and entry.event.verb in DECISION_VERBS
    ]
    return verbs[-1] if verbs else ""


def build_release_tokens(
    request: WorkspaceRequest, release: Release, items: Sequence[ReleaseItem]
) -> dict[str, str]:
    """Return the tokens of the forms that publish the release: the page shows its review."""
    effect = hash_release_effect(items)
    args = [request.workspace.slug, release.number]
    return {
        name: create_review_token(request.user.pk, reverse(f"releases:{name}", args=args), effect)
        for name in ("publish", "override")
    }


def get_release_context(
    request: WorkspaceRequest, release: Release, items: Sequence[ReleaseItem]
) -> dict[str, Any]:
    """Return the state of the release and the actions that are possible now."""
    is_open = release.status in OPEN_STATUSES
    is_approved = release.status == ReleaseStatus.APPROVED
    is_asking = release.status == ReleaseStatus.REQUESTED and bool(list_reviewed_agents(items))
    may_go = is_open and (is_approved or not list_reviewed_agents(items))
    outdated = list_outdated_items(items) if is_open else []
    is_movable = is_open or release.status == ReleaseStatus.VOIDED
    can_move = is_movable and can_move_labels(request.workspace, [release.label], by=request.actor)
    return {
        "approvers": list_approvers(request.workspace, release.requested_by) if is_asking else [],
        "is_open": is_open,
        # Why the user cannot approve the release; empty if nothing prevents it.
        "own_part": describe_own_part(release, items if is_asking else [], request.user),
        "may_go": may_go,
        "outdated": outdated,
        # Only owners can move a protected label.
        "can_move_label": can_move,
        "can_override": has_permission(request.membership.role, Permission.OVERRIDE)
        and is_open
        and can_move
        and not may_go
        and not outdated,
        # Without approval, the release itself is the decision, so `decided_at` is not before `released_at`.
        "was_approved": is_approved or is_before(release.decided_at, release.released_at),
    }


def is_before(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and one < other


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("new/", new, name="new"),
    path("<int:number>/", detail, name="detail"),
    path("<int:number>/live/", live_release, name="live"),
    *action_views.urlpatterns,
]
urls = (urlpatterns, "releases")
