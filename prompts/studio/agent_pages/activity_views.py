"""The activity tab of an agent: a list of changes, versions, label moves and releases."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from personas.agents.selectors import list_agents_with_parts
from personas.models import Agent, AuditEvent, Task, Workspace
from personas.tenancy.middleware import WorkspaceRequest
from prompts.publishing.provenance.origins import RECORD_KINDS
from prompts.studio.agent_pages.activity import (
    ACTIVITY_KINDS,
    ActivityEntry,
    get_activity_page,
    get_fetch_counts,
    group_activity,
)
from prompts.studio.agent_pages.selectors import ChannelStatus, list_channel_statuses

MAX_SHOWN_TASKS = 6
MAX_PAGE_NUMBER = 1_000
ACTIVITY_CHOICES = [
    ("", _("Everything")),
    ("change", _("Changes")),
    ("version", _("Versions")),
    ("label", _("Labels")),
    ("release", _("Releases")),
]
# URL namespaces of kinds whose pages are identified by the object label or the object id of an audit event.
ROUTES_BY_LABEL = {"tool": "tools", "skill": "skills"}
ROUTES_BY_ID = {"memory": "memories", "responsibility": "responsibilities", "file": "files"}


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(list_agents_with_parts(request.workspace), slug=agent)
    value = request.GET.get("what", "")
    kind = value if value in ACTIVITY_KINDS else ""
    statuses = list_channel_statuses(row)
    activity = get_activity_page(row, kind, parse_page_number(request.GET.get("page", "")))
    tasks = Task.objects.in_workspace(request.workspace).filter(agent=row, archived_at=None)
    context = {
        "agent": row,
        "channel_statuses": statuses,
        "activity": activity,
        "rows": [
            (group, get_entry_url(request.workspace, row, statuses, group.first))
            for group in group_activity(activity.entries)
        ],
        "selected_kind": kind,
        "choices": ACTIVITY_CHOICES,
        "fetches": get_fetch_counts(row, [status.prompt_id for status in statuses if status.prompt_id]),
        "tasks": tasks.order_by("-number")[:MAX_SHOWN_TASKS],
    }
    return render(request, "prompts/agents/activity.html", context)


def parse_page_number(value: str) -> int:
    """Parse a page number; invalid values mean the first page."""
    number = int(value) if value.isascii() and value.isdecimal() and len(value) < 5 else 1
    return min(max(number, 1), MAX_PAGE_NUMBER)


def get_entry_url(
    workspace: Workspace, agent: Agent, statuses: list[ChannelStatus], entry: ActivityEntry
) -> str:
    """Return the URL of the event's object, or an empty string if it would take another query."""
    event = entry.event
    if event is None:
        return ""
    if event.kind in ROUTES_BY_ID:
        return reverse(f"{ROUTES_BY_ID[event.kind]}:detail", args=[workspace.slug, event.object_id])
    if event.kind in ROUTES_BY_LABEL:
        return reverse(f"{ROUTES_BY_LABEL[event.kind]}:detail", args=[workspace.slug, event.object_label])
    slug = find_event_slug(agent, statuses, event)
    return reverse(f"{RECORD_KINDS[event.kind].family}:detail", args=[workspace.slug, slug]) if slug else ""


def find_event_slug(agent: Agent, statuses: list[ChannelStatus], event: AuditEvent) -> str:
    slugs = {("agent", agent.pk): agent.slug}
    for row in (agent.identity, agent.soul, agent.user_profile):
        if row is not None:
            slugs[row.kind, row.pk] = row.slug
    slugs |= {("channel", status.channel_id): status.channel_slug for status in statuses}
    return slugs.get((event.kind, event.object_id), "")


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-activity")
