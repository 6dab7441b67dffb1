"""What happened to one agent, newest first."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from personas.agents.selectors import agent_rows
from personas.models import Agent, AuditEvent, Task, Workspace
from personas.tenancy.middleware import WorkspaceRequest
from prompts.agent_pages.activity import WHATS, Happening, activity_of, fetches_of
from prompts.agent_pages.selectors import Line, lines_of
from prompts.provenance.origins import KINDS

SHOWN_TASKS = 6
LAST_PAGE = 1_000
CHOICES = [
    ("", _("Everything")),
    ("change", _("Changes")),
    ("version", _("Versions")),
    ("label", _("Labels")),
    ("release", _("Releases")),
]
# These are named in addresses by what an event calls them.
BY_LABEL = {"tool": "tools", "skill": "skills"}
BY_KEY = {"memory": "memories", "responsibility": "responsibilities", "file": "files"}


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(agent_rows(request.workspace), slug=agent)
    said = request.GET.get("what", "")
    what = said if said in WHATS else ""
    lines = lines_of(row)
    activity = activity_of(row, what, page_number(request.GET.get("page", "")))
    tasks = Task.objects.in_workspace(request.workspace).filter(agent=row, archived_at=None)
    context = {
        "agent": row,
        "agent_lines": lines,
        "activity": activity,
        "rows": [(one, address_of(request.workspace, row, lines, one)) for one in activity.happenings],
        "what": what,
        "choices": CHOICES,
        "fetches": fetches_of(row, [line.prompt_id for line in lines if line.prompt_id]),
        "tasks": tasks.order_by("-number")[:SHOWN_TASKS],
    }
    return render(request, "prompts/agents/activity.html", context)


def page_number(said: str) -> int:
    """What is no number of a page is the first."""
    number = int(said) if said.isascii() and said.isdecimal() and len(said) < 5 else 1
    return min(max(number, 1), LAST_PAGE)


def address_of(workspace: Workspace, agent: Agent, lines: list[Line], one: Happening) -> str:
    """The page of what an event tells of, as far as it is known without a further question."""
    event = one.event
    if event is None:
        return ""
    if event.kind in BY_KEY:
        return reverse(f"{BY_KEY[event.kind]}:detail", args=[workspace.slug, event.object_id])
    if event.kind in BY_LABEL:
        return reverse(f"{BY_LABEL[event.kind]}:detail", args=[workspace.slug, event.object_label])
    slug = slug_of(agent, lines, event)
    return reverse(f"{KINDS[event.kind].family}:detail", args=[workspace.slug, slug]) if slug else ""


def slug_of(agent: Agent, lines: list[Line], event: AuditEvent) -> str:
    known = {("agent", agent.pk): agent.slug}
    for row in (agent.identity, agent.soul, agent.user_profile):
        if row is not None:
            known[row.kind, row.pk] = row.slug
    known |= {("channel", line.channel_id): line.channel_slug for line in lines}
    return known.get((event.kind, event.object_id), "")


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-activity")
