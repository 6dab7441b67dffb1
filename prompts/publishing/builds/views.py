"""Page to rebuild all prompts, and the component that shows the progress of rebuilds by polling."""

from functools import partial

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.translation import ngettext

from personas.models import Agent
from personas.records.views import get_query_param
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import Automatic
from prompts.publishing.builds.causes import request_rebuild
from prompts.publishing.builds.progress import (
    get_build_progress,
    get_progress_context,
    list_active_channels,
    list_agent_channels,
    parse_since,
)
from prompts.tasks import enqueue_rebuilds


@require_permission(Permission.EDIT, Automatic("the page asks first, with the number of prompts"))
@transaction.atomic
def rebuild_all(request: WorkspaceRequest) -> HttpResponse:
    """Ask for confirmation, then enqueue rebuilds of all active agents."""
    if request.method != "POST":
        pairs = list_active_channels(request.workspace)
        context = {"prompts": pairs.count(), "agents": pairs.values("agent").distinct().count()}
        return render(request, "prompts/builds/everything.html", context)
    rows = Agent.objects.in_workspace(request.workspace).filter(archived_at=None)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    # The causes are stored, so a broker outage only delays the rebuild.
    request_rebuild(request.workspace, ids, by=request.actor)
    transaction.on_commit(partial(enqueue_rebuilds, request.workspace.pk), robust=True)
    count = list_agent_channels(request.workspace, ids).count()
    message = ngettext("%(count)d prompt is being rebuilt.", "%(count)d prompts are being rebuilt.", count)
    messages.success(request, message % {"count": count})
    return redirect("builds:everything", request.workspace.slug)


def rebuild_progress(request: WorkspaceRequest) -> HttpResponse:
    """Return the progress component, or 204 if the page already shows the current numbers."""
    progress = get_build_progress(request.workspace, parse_since(get_query_param(request, "since")))
    if progress is not None and get_query_param(request, "seen") == progress.fingerprint:
        return HttpResponse(status=204)
    context = get_progress_context(
        request.workspace, progress, everything=bool(get_query_param(request, "all"))
    )
    return render(request, "components/rebuilding.html", context | {"is_news": True})


urlpatterns: list[URLPattern] = [
    path("", rebuild_all, name="everything"),
    path("live/", rebuild_progress, name="live"),
]
urls = (urlpatterns, "builds")
