"""The Memory and Tools tabs of the agent page."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from personas.agents.selectors import (
    count_agent_memories,
    list_agent_memories,
    list_agent_tools,
    list_agents_with_parts,
)
from personas.errors import InvalidInput
from personas.memories.forms import MemoryForm
from personas.memories.services import create_memory
from personas.models import Agent, Memory, MemoryStatus, ToolUse
from personas.records.views import get_query_param
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import Reviewed

PAGE_SIZE = 50
STATUS_CHOICES = [
    ("live", gettext_lazy("Proposed and active")),
    *MemoryStatus.choices,
    ("all", gettext_lazy("All")),
]
OWNERSHIP_CHOICES = [
    ("", gettext_lazy("Own and shared")),
    ("own", gettext_lazy("Only this agent")),
    ("shared", gettext_lazy("Only shared")),
]


def get_agent_or_404(request: WorkspaceRequest, key: str) -> Agent:
    return get_object_or_404(list_agents_with_parts(request.workspace), slug=key)


def memory_tab(request: WorkspaceRequest, key: str) -> HttpResponse:
    """List the agent's own and shared memories: active and proposed ones unless a filter is set."""
    return render_memory_tab(request, get_agent_or_404(request, key))


@require_permission(Permission.EDIT, Reviewed())
@require_POST
def add_memory(request: WorkspaceRequest, key: str) -> HttpResponse:
    """Add a memory to this agent. Its initial status, active or proposed, comes from the form."""
    agent = get_agent_or_404(request, key)
    data = request.POST.copy()
    data["agent"] = str(agent.pk)
    form = MemoryForm(data, workspace=request.workspace)
    if form.is_valid():
        try:
            memory = create_memory(request.workspace, form.values(), by=request.actor)
        except InvalidInput as error:
            form.add_service_errors(error)
        else:
            is_proposed = memory.status == MemoryStatus.PROPOSED
            messages.success(request, _("Memory proposed.") if is_proposed else _("Memory added."))
            return redirect("agents:memory", request.workspace.slug, agent.slug)
    return render_memory_tab(request, agent, form)


def render_memory_tab(
    request: WorkspaceRequest, agent: Agent, form: MemoryForm | None = None
) -> HttpResponse:
    status, whose = (
        get_choice_param(request, "status", STATUS_CHOICES),
        get_choice_param(request, "whose", OWNERSHIP_CHOICES),
    )
    query = get_query_param(request, "q").strip()[:200]
    rows = filter_agent_memories(list_agent_memories(agent), agent, status, whose)
    rows = rows.filter(text__icontains=query) if query else rows
    context = {
        "agent": agent,
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "figures": count_agent_memories(agent),
        "q": query,
        "filters": [
            {"name": "status", "label": _("Status"), "options": STATUS_CHOICES, "value": status},
            {"name": "whose", "label": _("Sharing"), "options": OWNERSHIP_CHOICES, "value": whose},
        ],
        "is_narrowed": bool(query or request.GET),
        "form": form or MemoryForm(workspace=request.workspace),
    }
    return render(request, "personas/agents/memory.html", context, status=422 if form else 200)


def get_choice_param(request: WorkspaceRequest, name: str, options: list[tuple[str, Any]]) -> str:
    """Return the query parameter `name` if its value is one of the options, otherwise the first option."""
    param = request.GET.get(name, "")
    return param if param in {value for value, _ in options} else options[0][0]


def filter_agent_memories(rows: QuerySet[Memory], agent: Agent, status: str, whose: str) -> QuerySet[Memory]:
    if status == "live":
        rows = rows.filter(status__in=[MemoryStatus.PROPOSED, MemoryStatus.ACTIVE])
    elif status != "all":
        rows = rows.filter(status=status)
    return rows.filter(agent=agent if whose == "own" else None) if whose else rows


def tools_tab(request: WorkspaceRequest, key: str) -> HttpResponse:
    agent = get_agent_or_404(request, key)
    links = list(list_agent_tools(agent))
    context = {
        "agent": agent,
        "links": links,
        "active": [link for link in links if link.use == ToolUse.ACTIVE],
        "planning": [link for link in links if link.use == ToolUse.PLANNING],
    }
    return render(request, "personas/agents/tools.html", context)
