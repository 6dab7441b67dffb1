"""Everything built anew, and how far the workers have come: the part of a page that asks by itself."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.utils.translation import ngettext

from personas.models import Agent
from personas.records.views import asked
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.builds.causes import ask_for_rebuild
from prompts.builds.progress import pairs_in_use, pairs_of, progress_of, progress_shown, read_since
from prompts.tasks import hand_on


@needs(Permission.EDIT)
def everything(request: WorkspaceRequest) -> HttpResponse:
    """Asks first, then leaves all live agents to the workers."""
    if request.method != "POST":
        pairs = pairs_in_use(request.workspace)
        context = {"prompts": pairs.count(), "agents": pairs.values("agent").distinct().count()}
        return render(request, "prompts/rebuilding/everything.html", context)
    rows = Agent.objects.in_workspace(request.workspace).filter(archived_at=None)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    # The rows say what is to be done, so a broker that is down only delays it.
    ask_for_rebuild(request.workspace, ids, by=request.actor)
    hand_on(request.workspace.pk, ids)
    count = pairs_of(request.workspace, ids).count()
    said = ngettext("%(count)d prompt is being rebuilt.", "%(count)d prompts are being rebuilt.", count)
    messages.success(request, said % {"count": count})
    return redirect("rebuilding:everything", request.workspace.slug)


def live(request: WorkspaceRequest) -> HttpResponse:
    """Empty-handed while nothing has changed."""
    progress = progress_of(request.workspace, read_since(asked(request, "since")))
    if progress is not None and asked(request, "seen") == progress.mark:
        return HttpResponse(status=204)
    context = progress_shown(request.workspace, progress, everything=bool(asked(request, "all")))
    return render(request, "components/rebuilding.html", context | {"is_news": True})


urlpatterns: list[URLPattern] = [
    path("", everything, name="everything"),
    path("live/", live, name="live"),
]
urls = (urlpatterns, "rebuilding")
