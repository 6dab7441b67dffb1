"""How far the workers have come with a wide change: the part of a page that asks by itself."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from personas.tenancy import WorkspaceRequest
from personas.views.records import asked
from prompts.progress import progress_of, progress_shown, read_since


def live(request: WorkspaceRequest) -> HttpResponse:
    """Empty-handed while nothing has changed."""
    progress = progress_of(request.workspace, read_since(asked(request, "since")))
    if progress is not None and asked(request, "seen") == progress.mark:
        return HttpResponse(status=204)
    context = progress_shown(request.workspace, progress, everything=bool(asked(request, "all")))
    return render(request, "components/rebuilding.html", context | {"is_news": True})


urlpatterns: list[URLPattern] = [path("live/", live, name="live")]
urls = (urlpatterns, "rebuilding")
