"""What happened to one agent, newest first."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from personas.agents.selectors import list_agents_with_parts
from personas.models import Agent, AuditEvent, Task, Workspace
from personas.tenancy.middleware import WorkspaceRequest
from prompts.agent_pages.activity import ACTIVITY_KINDS, ActivityEntry, get_activity_page, get_fetch_counts
from prompts.agent_pages.selectors import ChannelStatus, list_channel_statuses
from prompts.provenance.origins import RECORD_KINDS

MAX_SHOWN_TASKS = 6
MAX_PAGE_NUMBER = 1_000
ACTIVITY_CHOICES = [
    ("", _("Everything")),
    ("change", _("Changes")),
    ("version", _("Versions")),
    ("label", _("Labels")),
    ("release", _("Releases")),
]
# These are named in addresses by what an event calls them.
ROUTES_BY_LABEL = {"tool": "tools", "skill": "skills"}
ROUTES_BY_ID = {"memory": "memories", "responsibility": "responsibilities", "file": "files"}


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(list_agents_with_parts(request.workspace), slug=agent)
    said = request.GET.get("what", "")
    what = said if said in ACTIVITY_KINDS else ""
    lines = list_channel_statuses(row)
    activity = get_activity_page(row, what, parse_page_number(request.GET.get("page", "")))
    tasks = Task.objects.in_workspace(request.workspace).filter(agent=row, archived_at=None)
    context = {
        "agent": row,
        "agent_lines": lines,
        "activity": activity,
        "rows": [(one, get_entry_url(request.workspace, row, lines, one)) for one in activity.happenings],
        "what": what,
        "choices": ACTIVITY_CHOICES,
        "fetches": get_fetch_counts(row, [line.prompt_id for line in lines if line.prompt_id]),
        "tasks": tasks.order_by("-number")[:MAX_SHOWN_TASKS],
    }
    return render(request, "prompts/agents/activity.html", context)


def parse_page_number(said: str) -> int:
    """What is no number of a page is the first."""
    number = int(said) if said.isascii() and said.isdecimal() and len(said) < 5 else 1
    return min(max(number, 1), MAX_PAGE_NUMBER)


def get_entry_url(workspace: Workspace, agent: Agent, lines: list[ChannelStatus], one: ActivityEntry) -> str:
    """The page of what an event tells of, as far as it is known without a further question."""
    event = one.event
    if event is None:
        return ""
    if event.kind in ROUTES_BY_ID:
        return reverse(f"{ROUTES_BY_ID[event.kind]}:detail", args=[workspace.slug, event.object_id])
    if event.kind in ROUTES_BY_LABEL:
        return reverse(f"{ROUTES_BY_LABEL[event.kind]}:detail", args=[workspace.slug, event.object_label])
    slug = find_event_slug(agent, lines, event)
    return reverse(f"{RECORD_KINDS[event.kind].family}:detail", args=[workspace.slug, slug]) if slug else ""


def find_event_slug(agent: Agent, lines: list[ChannelStatus], event: AuditEvent) -> str:
    known = {("agent", agent.pk): agent.slug}
    for row in (agent.identity, agent.soul, agent.user_profile):
        if row is not None:
            known[row.kind, row.pk] = row.slug
    known |= {("channel", line.channel_id): line.channel_slug for line in lines}
    return known.get((event.kind, event.object_id), "")


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-activity")
