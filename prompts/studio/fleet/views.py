"""The fleet page, home of a workspace: the matrix of agents and channels, and pending work."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_POST

from core.db.replica import has_recent_write, read_from_replica
from personas.models import Agent, Workspace
from personas.records.list_views import get_query_param
from personas.roles import Permission
from personas.selectors import list_audit_events
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import NotReviewed
from prompts.evidence.ledger.selectors import count_daily_fetches
from prompts.publishing.builds.middleware import REBUILD_SESSION_KEY
from prompts.publishing.builds.progress import (
    SLOW_AFTER,
    BuildProgress,
    count_builds_since,
    get_progress_context,
    parse_since,
)
from prompts.studio.demo import views as demo_views
from prompts.studio.fleet import bulk_views
from prompts.studio.fleet.agents import get_agent_page, list_channels_in_use
from prompts.studio.fleet.attention import is_setup_complete, list_attention_items, list_setup_steps
from prompts.studio.fleet.bot_activity import get_bot_activity, get_hourly_chart
from prompts.studio.fleet.counts import WorkspaceCounts, get_workspace_counts
from prompts.studio.fleet.filters import build_filter_fields, parse_fleet_filter
from prompts.studio.fleet.matrix import build_matrix_rows

# Maximum number of agents whose sparklines one request loads.
MAX_TRAFFIC_AGENTS = 200
MAX_SHOWN_EVENTS = 6
# Set when a member dismisses the setup steps. The maximum age is in seconds.
STEPS_DISMISSED_COOKIE, COOKIE_MAX_AGE = "dr_no_steps", 365 * 24 * 3_600


def fleet_overview(request: WorkspaceRequest) -> HttpResponse:
    counts = get_workspace_counts(request.workspace)
    context = (
        {"counts": counts}
        | get_setup_context(request, counts)
        | get_rebuild_context(request, counts.waiting_since)
    )
    if not counts.agents:
        return render(request, "prompts/fleet/first_run.html", context)
    context |= get_matrix_context(request) | {
        "chart": read_from_replica(
            lambda alias: get_hourly_chart(request.workspace, using=alias), fresh=has_recent_write(request)
        ),
        "attention_items": list_attention_items(counts, request.workspace.slug),
        "events": list_audit_events(request.workspace).defer("before", "after")[:MAX_SHOWN_EVENTS],
    }
    return render(request, "prompts/fleet/show.html", context)


def get_matrix_context(request: WorkspaceRequest) -> dict[str, Any]:
    workspace = request.workspace
    channels = list_channels_in_use(workspace.pk)
    fleet_filter = parse_fleet_filter(request.GET, channels)
    bots = read_from_replica(
        lambda alias: get_bot_activity(workspace, using=alias), fresh=has_recent_write(request)
    )
    page = get_agent_page(workspace, fleet_filter, bots.outdated)
    return {
        "page": page,
        "rows": build_matrix_rows(workspace, list(page), channels, fleet_filter, bots),
        "columns": [channel for channel in channels if fleet_filter.channel in {"", channel.slug}],
        "bots": bots,
        "fleet_filter": fleet_filter,
        "filters": build_filter_fields(fleet_filter, channels),
    }


def get_setup_context(request: WorkspaceRequest, counts: WorkspaceCounts) -> dict[str, Any]:
    """Return the setup steps unless they are complete or dismissed."""
    if STEPS_DISMISSED_COOKIE in request.COOKIES:
        return {}
    steps = list_setup_steps(counts, request.workspace.slug, request.membership.role)
    done = sum(step.is_done for step in steps)
    return {} if is_setup_complete(steps) else {"steps": steps, "steps_done": done}


def get_rebuild_context(request: WorkspaceRequest, oldest: datetime | None) -> dict[str, Any]:
    """Return the progress of rebuilds; empty unless builds are pending or this session started some.

    `oldest` is the time of the oldest pending build. Without one, and without a save in this session, no
    query is run.
    """
    since = parse_since(request.session.pop(REBUILD_SESSION_KEY, ""))
    start_times = [time for time in (since, oldest) if time is not None]
    if not start_times:
        return {}
    progress = get_progress_since(request.workspace, min(start_times), oldest)
    if not progress.waiting and (since is None or not progress.total):
        return {}
    return get_progress_context(request.workspace, progress, everything=False)


def get_progress_since(workspace: Workspace, started_at: datetime, oldest: datetime | None) -> BuildProgress:
    is_slow = oldest is not None and timezone.now() - oldest > SLOW_AFTER
    return BuildProgress(started_at, **count_builds_since(workspace, started_at), is_slow=is_slow)


def fleet_traffic(request: WorkspaceRequest) -> HttpResponse:
    """Render the sparklines of the agents on the page, which are loaded after it.

    Counting the ledger would delay the page. Agents of other workspaces are ignored.
    """
    values = get_query_param(request, "agents").split(",")[:MAX_TRAFFIC_AGENTS]
    ids = {int(value) for value in values if value.isascii() and value.isdecimal() and len(value) < 16}
    rows = Agent.objects.in_workspace(request.workspace).filter(pk__in=ids)
    traffic = count_daily_fetches(request.workspace, sorted(rows.values_list("pk", flat=True)))
    return render(request, "prompts/fleet/_traffic.html", {"traffic": list(traffic.items())})


@require_permission(Permission.READ, NotReviewed("hides the first steps"))
@require_POST
def dismiss_setup_steps(request: WorkspaceRequest) -> HttpResponse:
    """Hide the setup steps in this browser for this workspace."""
    response = redirect("home", request.workspace.slug)
    response.set_cookie(
        STEPS_DISMISSED_COOKIE,
        "1",
        max_age=COOKIE_MAX_AGE,
        path=response["Location"],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


urlpatterns: list[URLPattern] = [
    path("bulk/", bulk_views.run_bulk_action, name="bulk"),
    path("demo/", demo_views.load_demo_view, name="demo"),
    path("traffic/", fleet_traffic, name="traffic"),
    path("steps/dismiss/", dismiss_setup_steps, name="dismiss"),
]
urls = (urlpatterns, "fleet")
