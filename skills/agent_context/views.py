"""Context page of an agent: choose its sources and settings, see effective, withheld and pending files."""

from collections import Counter
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import EditConflict, InvalidInput
from personas.models import Agent
from personas.roles import Permission
from personas.selectors import list_agents
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.responses import get_unchanged_response, hash_page_state
from personas.ui.review import Reviewed
from skills.agent_context.effective import AgentContextLoader
from skills.agent_context.forms import ContextForm
from skills.agent_context.page import (
    ContextChoice,
    get_context_and_pending,
    get_context_choice,
    get_context_fingerprint,
    request_context_refresh,
)
from skills.agent_context.services import SETTING_NAMES, choose_context, inherit_context
from skills.agent_context.withheld import UNUSABLE_STATUSES
from skills.models import AgentContext, Source

DETAIL_TEMPLATE = "skills/agent_context/detail.html"


def detail(request: WorkspaceRequest, agent: str) -> HttpResponse:
    return render(request, DETAIL_TEMPLATE, build_context_page(request, get_requested_agent(request, agent)))


def poll_context(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """Render the polled part of the page, or answer 204 if nothing has changed since the last poll."""
    row = get_requested_agent(request, agent)
    loader = AgentContextLoader(row, has_contents=True)
    mark = hash_page_state(get_context_fingerprint(row, loader.reader))
    if response := get_unchanged_response(request, mark):
        return response
    context = build_context_section(loader, get_context_choice(row, loader.lineage)) | {
        "agent": row,
        "mark": mark,
        "is_news": True,
    }
    return render(request, "skills/agent_context/_live.html", context)


@require_permission(Permission.EDIT, Reviewed())
@require_POST
def choose_source(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_requested_agent(request, agent)
    form = ContextForm(request.POST, agent=row, row=get_context_choice(row).row)
    if form.is_valid():
        try:
            saved = save_context_form(request, row, form)
        except InvalidInput as error:
            form.add_service_errors(error)
        except EditConflict:
            return render(
                request,
                DETAIL_TEMPLATE,
                build_context_page(request, row, build_conflict_form(request, row)),
                status=409,
            )
        else:
            request_context_refresh(saved, by=request.actor)
            messages.success(request, _("Context for %(agent)s saved.") % {"agent": row})
            return redirect(context_url(request, row))
    return render(request, DETAIL_TEMPLATE, build_context_page(request, row, form), status=422)


@require_permission(Permission.EDIT, Reviewed())
@require_POST
def inherit_from_parent(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_requested_agent(request, agent)
    inherit_context(row, by=request.actor)
    messages.success(
        request,
        _("%(agent)s now inherits its parent's context.") % {"agent": row}
        if row.parent_id
        else _("The agent's own context settings were removed."),
    )
    return redirect(context_url(request, row))


# --- helpers -------------------------------------------------------------------------------------------


def get_requested_agent(request: WorkspaceRequest, slug: str) -> Agent:
    rows = list_agents(request.workspace).prefetch_related(None)
    return get_object_or_404(rows, slug=slug)


def context_url(request: WorkspaceRequest, agent: Agent) -> str:
    return reverse("agent-context:detail", args=[request.workspace.slug, agent.slug])


def save_context_form(request: WorkspaceRequest, agent: Agent, form: ContextForm) -> AgentContext:
    values = form.cleaned_data
    return choose_context(
        agent,
        form.list_uses(),
        values["harness"],
        working_directory=values["working_directory"],
        expected=values["revision"],
        by=request.actor,
        settings=form.build_settings(),
    )


def build_conflict_form(request: WorkspaceRequest, agent: Agent) -> ContextForm:
    """Return the submitted form after an edit conflict, with a message that the agent was changed.

    The form gets the agent's current revision number, so that the user can submit it again successfully.
    """
    data = request.POST.copy()
    data["revision"] = str(agent.revision)
    form = ContextForm(data, agent=agent, row=get_context_choice(agent).row)
    form.add_error(None, _("This agent changed after you opened the page. Check the values and save again."))
    return form


def build_context_page(
    request: WorkspaceRequest, agent: Agent, form: ContextForm | None = None
) -> dict[str, Any]:
    loader = AgentContextLoader(agent, has_contents=True)
    mark, choice = (
        hash_page_state(get_context_fingerprint(agent, loader.reader)),
        get_context_choice(agent, loader.lineage),
    )
    return build_context_section(loader, choice) | {
        "agent": agent,
        "mark": mark,
        "choice": choice,
        "has_own": choice.chosen_by is not None and choice.chosen_by.pk == agent.pk,
        "form": form or ContextForm(agent=agent, row=choice.row, initial=get_initial_values(agent, choice)),
    }


def get_initial_values(agent: Agent, choice: ContextChoice) -> dict[str, Any]:
    row = choice.row or AgentContext(harness=get_common_harness(agent.workspace_id))
    values = {name: getattr(row, name) for name in SETTING_NAMES}
    return values | {
        "harness": row.harness,
        "working_directory": agent.working_directory,
        "revision": agent.revision,
    }


def get_common_harness(workspace_id: int) -> str:
    """Return the rules for an agent that reads no source yet: rules that as many sources as possible have."""
    sources = Source.objects.in_workspace(workspace_id).filter(archived_at=None)
    counts = Counter([name for names in sources.values_list("harnesses", flat=True) for name in names])
    default = AgentContext().harness
    return max(counts, key=lambda name: (counts[name], name == default), default=default)


def build_context_section(loader: AgentContextLoader, choice: ContextChoice) -> dict[str, Any]:
    """Return the template context of the polled part: effective, unusable, missing and pending files."""
    effective, pending = get_context_and_pending(loader.agent, loader)
    return {
        "effective_context": effective,
        "choice": choice,
        "unusable_files": [file for file in effective.withheld if file.status in UNUSABLE_STATUSES],
        "missing_files": [file for file in effective.withheld if file.status not in UNUSABLE_STATUSES],
        "pending_files": pending,
        "characters": sum(len(effective_file.text) for effective_file in effective.files),
    }


urlpatterns: list[URLPattern] = [
    path("", detail, name="detail"),
    path("live/", poll_context, name="live"),
    path("choose/", choose_source, name="choose"),
    path("inherit/", inherit_from_parent, name="inherit"),
]
urls = (urlpatterns, "agent-context")
