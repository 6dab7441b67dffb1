"""What an agent knows and what it may call: two tabs of its page."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from personas.agents.selectors import agent_rows, memories_reaching, memory_figures, tool_links_of
from personas.errors import Invalid
from personas.memories.forms import MemoryForm
from personas.memories.services import remember
from personas.models import Agent, Memory, MemoryState, ToolUse
from personas.records.views import asked
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs

PAGE_SIZE = 50
STATES = [("live", gettext_lazy("Proposed and active")), *MemoryState.choices, ("all", gettext_lazy("All"))]
WHOSE = [
    ("", gettext_lazy("Own and shared")),
    ("own", gettext_lazy("Only its own")),
    ("shared", gettext_lazy("Only shared")),
]


def found_agent(request: WorkspaceRequest, key: str) -> Agent:
    return get_object_or_404(agent_rows(request.workspace), slug=key)


def memory(request: WorkspaceRequest, key: str) -> HttpResponse:
    """All that reaches the agent's prompts, or would if someone agreed to it."""
    return memory_page(request, found_agent(request, key))


@needs(Permission.EDIT)
@require_POST
def add_memory(request: WorkspaceRequest, key: str) -> HttpResponse:
    """A fact for this agent alone, believed at once or only proposed."""
    agent = found_agent(request, key)
    said = request.POST.copy()
    said["agent"] = str(agent.pk)
    form = MemoryForm(said, workspace=request.workspace)
    if form.is_valid():
        try:
            made = remember(request.workspace, form.values(), by=request.actor)
        except Invalid as error:
            form.take_errors(error)
        else:
            is_proposed = made.state == MemoryState.PROPOSED
            messages.success(request, _("Memory proposed.") if is_proposed else _("Memory added."))
            return redirect("agents:memory", request.workspace.slug, agent.slug)
    return memory_page(request, agent, form)


def memory_page(request: WorkspaceRequest, agent: Agent, form: MemoryForm | None = None) -> HttpResponse:
    state, whose = chosen(request, "state", STATES), chosen(request, "whose", WHOSE)
    words = asked(request, "q").strip()[:200]
    rows = narrowed(memories_reaching(agent), agent, state, whose)
    rows = rows.filter(text__icontains=words) if words else rows
    context = {
        "agent": agent,
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "figures": memory_figures(agent),
        "q": words,
        "filters": [
            {"name": "state", "label": _("State"), "options": STATES, "value": state},
            {"name": "whose", "label": _("Whose"), "options": WHOSE, "value": whose},
        ],
        "is_narrowed": bool(words or request.GET),
        "form": form or MemoryForm(workspace=request.workspace),
    }
    return render(request, "personas/agents/memory.html", context, status=422 if form else 200)


def chosen(request: WorkspaceRequest, name: str, options: list[tuple[str, Any]]) -> str:
    """What the address says, if it is one of the choices; else the first."""
    said = request.GET.get(name, "")
    return said if said in {value for value, _ in options} else options[0][0]


def narrowed(rows: QuerySet[Memory], agent: Agent, state: str, whose: str) -> QuerySet[Memory]:
    if state == "live":
        rows = rows.filter(state__in=[MemoryState.PROPOSED, MemoryState.ACTIVE])
    elif state != "all":
        rows = rows.filter(state=state)
    return rows.filter(agent=agent if whose == "own" else None) if whose else rows


def tools(request: WorkspaceRequest, key: str) -> HttpResponse:
    agent = found_agent(request, key)
    links = list(tool_links_of(agent))
    context = {
        "agent": agent,
        "links": links,
        "active": [link for link in links if link.use == ToolUse.ACTIVE],
        "planning": [link for link in links if link.use == ToolUse.PLANNING],
    }
    return render(request, "personas/agents/tools.html", context)
