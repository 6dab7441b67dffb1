"""Page of the events of a workspace, newest first. It asks for new events every two seconds."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.http import urlencode

from personas.events.selectors import list_newest_events
from personas.events.types import EVENT_TYPES
from personas.tenancy.middleware import WorkspaceRequest

PAGE_SIZE = 50


def index(request: WorkspaceRequest) -> HttpResponse:
    return render(request, "personas/events/list.html", get_events_context(request))


def live_events(request: WorkspaceRequest) -> HttpResponse:
    """Return the table if there are new events, and 204 otherwise, so that the page is not replaced."""
    context = get_events_context(request)
    if request.GET.get("seen") == str(context["newest"]):
        return HttpResponse(status=204)
    return render(request, "personas/events/_live.html", context)


def get_events_context(request: WorkspaceRequest) -> dict[str, object]:
    name, before = request.GET.get("type", ""), request.GET.get("before", "")
    name = name if name in EVENT_TYPES else ""
    is_further = before.isascii() and before.isdecimal() and len(before) < 19
    events = list_newest_events(request.workspace)
    newest = events.values_list("sequence", flat=True).first() or 0
    if name:
        events = events.filter(type=name)
    if is_further:
        events = events.filter(sequence__lt=int(before))
    rows = list(events[: PAGE_SIZE + 1])
    filters = {"type": name} if name else {}
    has_older = len(rows) > PAGE_SIZE
    older = {**filters, "before": str(rows[PAGE_SIZE - 1].sequence)} if has_older else {}
    return {
        "events": rows[:PAGE_SIZE],
        "newest": newest,
        "types": list(EVENT_TYPES),
        "type": name,
        "is_further": is_further,
        "older": urlencode(older),
        "newest_query": urlencode(filters),
        "poll": urlencode({**filters, "seen": str(newest)}),
    }


urlpatterns: list[URLPattern] = [
    path("", index, name="events"),
    path("live/", live_events, name="events-live"),
]
