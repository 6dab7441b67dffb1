"""The fleet, home of a workspace: every agent on every channel, and what waits for someone."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_POST

from core.db.replica import has_recent_write, read_from_replica
from personas.models import Workspace
from personas.roles import Permission
from personas.selectors import list_audit_events
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from prompts.builds.middleware import REBUILD_SESSION_KEY
from prompts.builds.progress import (
    SLOW_AFTER,
    BuildProgress,
    count_builds_since,
    get_progress_context,
    parse_since,
)
from prompts.demo import views as demo_views
from prompts.fleet import bulk_views
from prompts.fleet.agents import get_agent_page, list_channels_in_use
from prompts.fleet.attention import is_setup_complete, list_attention_items, list_setup_steps
from prompts.fleet.bot_activity import get_bot_activity, get_hourly_chart
from prompts.fleet.counts import WorkspaceCounts, get_workspace_counts
from prompts.fleet.filters import build_filter_fields, parse_fleet_filter
from prompts.fleet.matrix import build_matrix_rows

MAX_SHOWN_EVENTS = 6
# In the browser of whoever has put the first steps away; a year is as good as for ever.
STEPS_DISMISSED_COOKIE, COOKIE_MAX_AGE = "dr_no_steps", 365 * 24 * 3_600


def fleet_overview(request: WorkspaceRequest) -> HttpResponse:
    figures = get_workspace_counts(request.workspace)
    context = (
        {"figures": figures}
        | get_setup_context(request, figures)
        | get_rebuild_context(request, figures.waiting_since)
    )
    if not figures.agents:
        return render(request, "prompts/fleet/first_run.html", context)
    context |= get_matrix_context(request) | {
        "chart": read_from_replica(
            lambda alias: get_hourly_chart(request.workspace, using=alias), fresh=has_recent_write(request)
        ),
        "waiting": list_attention_items(figures, request.workspace.slug),
        "events": list_audit_events(request.workspace).defer("before", "after")[:MAX_SHOWN_EVENTS],
    }
    return render(request, "prompts/fleet/show.html", context)


def get_matrix_context(request: WorkspaceRequest) -> dict[str, Any]:
    workspace = request.workspace
    channels = list_channels_in_use(workspace)
    asked = parse_fleet_filter(request.GET, channels)
    bots = read_from_replica(
        lambda alias: get_bot_activity(workspace, using=alias), fresh=has_recent_write(request)
    )
    page = get_agent_page(workspace, asked, bots.behind)
    return {
        "page": page,
        "rows": build_matrix_rows(workspace, list(page), channels, asked, bots),
        "columns": [channel for channel in channels if asked.channel in {"", channel.slug}],
        "bots": bots,
        "asked": asked,
        "filters": build_filter_fields(asked, channels),
    }


def get_setup_context(request: WorkspaceRequest, figures: WorkspaceCounts) -> dict[str, Any]:
    """What a new workspace has still to do, unless it was put away."""
    if STEPS_DISMISSED_COOKIE in request.COOKIES:
        return {}
    found = list_setup_steps(figures, request.workspace.slug, request.membership.role)
    done = sum(step.is_done for step in found)
    return {} if is_setup_complete(found) else {"steps": found, "steps_done": done}


def get_rebuild_context(request: WorkspaceRequest, oldest: datetime | None) -> dict[str, Any]:
    """How far a wide change has come; asked only where something waits or was waited for."""
    since = parse_since(request.session.pop(REBUILD_SESSION_KEY, ""))
    moments = [moment for moment in (since, oldest) if moment is not None]
    if not moments:
        return {}
    progress = get_progress_since(request.workspace, min(moments), oldest)
    if not progress.waiting and (since is None or not progress.total):
        return {}
    return get_progress_context(request.workspace, progress, everything=False)


def get_progress_since(workspace: Workspace, begun: datetime, oldest: datetime | None) -> BuildProgress:
    is_slow = oldest is not None and timezone.now() - oldest > SLOW_AFTER
    return BuildProgress(begun, **count_builds_since(workspace, begun), is_slow=is_slow)


@require_permission(Permission.READ)
@require_POST
def dismiss_setup_steps(request: WorkspaceRequest) -> HttpResponse:
    """Put the first steps away, in this browser and for this workspace."""
    answer = redirect("home", request.workspace.slug)
    answer.set_cookie(
        STEPS_DISMISSED_COOKIE,
        "1",
        max_age=COOKIE_MAX_AGE,
        path=answer["Location"],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return answer


urlpatterns: list[URLPattern] = [
    path("bulk/", bulk_views.run_bulk_action, name="bulk"),
    path("demo/", demo_views.load_demo_view, name="demo"),
    path("steps/dismiss/", dismiss_setup_steps, name="dismiss"),
]
urls = (urlpatterns, "fleet")
