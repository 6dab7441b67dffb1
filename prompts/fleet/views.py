"""The fleet, home of a workspace: every agent on every channel, and what waits for someone."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_POST

from core.db.replica import just_wrote, read_aside
from personas.models import Workspace
from personas.roles import Permission
from personas.selectors import audit_of
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.builds.middleware import REBUILDING_SINCE
from prompts.builds.progress import SLOW, Progress, counts_since, progress_shown, read_since
from prompts.demo import views as demo_views
from prompts.fleet import bulk_views
from prompts.fleet.agents import channels_in_use, page_of_agents
from prompts.fleet.attention import is_over, steps_for, waiting_in
from prompts.fleet.bot_activity import bots_of, served_per_hour
from prompts.fleet.counts import Figures, figures_of
from prompts.fleet.filters import filters, read
from prompts.fleet.matrix import rows_of

SHOWN_EVENTS = 6
# In the browser of whoever has put the first steps away; a year is as good as for ever.
NO_STEPS, A_YEAR = "dr_no_steps", 365 * 24 * 3_600


def show(request: WorkspaceRequest) -> HttpResponse:
    figures = figures_of(request.workspace)
    context = {"figures": figures} | steps(request, figures) | rebuilding(request, figures.waiting_since)
    if not figures.agents:
        return render(request, "prompts/fleet/first_run.html", context)
    context |= matrix(request) | {
        "chart": read_aside(
            lambda alias: served_per_hour(request.workspace, using=alias), fresh=just_wrote(request)
        ),
        "waiting": waiting_in(figures, request.workspace.slug),
        "events": audit_of(request.workspace).defer("before", "after")[:SHOWN_EVENTS],
    }
    return render(request, "prompts/fleet/show.html", context)


def matrix(request: WorkspaceRequest) -> dict[str, Any]:
    workspace = request.workspace
    channels = channels_in_use(workspace)
    asked = read(request.GET, channels)
    bots = read_aside(lambda alias: bots_of(workspace, using=alias), fresh=just_wrote(request))
    page = page_of_agents(workspace, asked, bots.behind)
    return {
        "page": page,
        "rows": rows_of(workspace, list(page), channels, asked, bots),
        "columns": [channel for channel in channels if asked.channel in {"", channel.slug}],
        "bots": bots,
        "asked": asked,
        "filters": filters(asked, channels),
    }


def steps(request: WorkspaceRequest, figures: Figures) -> dict[str, Any]:
    """What a new workspace has still to do, unless it was put away."""
    if NO_STEPS in request.COOKIES:
        return {}
    found = steps_for(figures, request.workspace.slug, request.membership.role)
    done = sum(step.is_done for step in found)
    return {} if is_over(found) else {"steps": found, "steps_done": done}


def rebuilding(request: WorkspaceRequest, oldest: datetime | None) -> dict[str, Any]:
    """How far a wide change has come; asked only where something waits or was waited for."""
    since = read_since(request.session.pop(REBUILDING_SINCE, ""))
    moments = [moment for moment in (since, oldest) if moment is not None]
    if not moments:
        return {}
    progress = progress_since(request.workspace, min(moments), oldest)
    if not progress.waiting and (since is None or not progress.total):
        return {}
    return progress_shown(request.workspace, progress, everything=False)


def progress_since(workspace: Workspace, begun: datetime, oldest: datetime | None) -> Progress:
    is_slow = oldest is not None and timezone.now() - oldest > SLOW
    return Progress(begun, **counts_since(workspace, begun), is_slow=is_slow)


@needs(Permission.READ)
@require_POST
def dismiss(request: WorkspaceRequest) -> HttpResponse:
    """Put the first steps away, in this browser and for this workspace."""
    answer = redirect("home", request.workspace.slug)
    answer.set_cookie(
        NO_STEPS,
        "1",
        max_age=A_YEAR,
        path=answer["Location"],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return answer


urlpatterns: list[URLPattern] = [
    path("bulk/", bulk_views.bulk, name="bulk"),
    path("demo/", demo_views.load, name="demo"),
    path("steps/dismiss/", dismiss, name="dismiss"),
]
urls = (urlpatterns, "fleet")
