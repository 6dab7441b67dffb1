"""What an agent reads from files, and from where."""

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
from skills.agent_context.effective import AgentContextLoader
from skills.agent_context.forms import ContextForm
from skills.agent_context.page import (
    ContextChoice,
    get_context_and_pending,
    get_context_choice,
    get_context_fingerprint,
)
from skills.agent_context.services import choose_context, inherit_context
from skills.agent_context.withheld import UNUSABLE_STATES

DETAIL_TEMPLATE = "skills/contexts/detail.html"


def detail(request: WorkspaceRequest, agent: str) -> HttpResponse:
    return render(request, DETAIL_TEMPLATE, build_context_page(request, get_requested_agent(request, agent)))


def poll_context(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """The moving part of the page; empty-handed while nothing has changed."""
    row = get_requested_agent(request, agent)
    shelf = AgentContextLoader(row, is_whole=True)
    mark = hash_page_state(get_context_fingerprint(row, shelf.outlook))
    if answer := get_unchanged_response(request, mark):
        return answer
    shown = build_context_section(shelf, get_context_choice(row, shelf.above)) | {
        "agent": row,
        "mark": mark,
        "is_news": True,
    }
    return render(request, "skills/contexts/_live.html", shown)


@require_permission(Permission.EDIT)
@require_POST
def choose_source(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_requested_agent(request, agent)
    form = ContextForm(request.POST, agent=row)
    if form.is_valid():
        try:
            save_context_form(request, row, form)
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
            messages.success(request, _("Saved what %(agent)s reads.") % {"agent": row})
            return redirect(context_url(request, row))
    return render(request, DETAIL_TEMPLATE, build_context_page(request, row, form), status=422)


@require_permission(Permission.EDIT)
@require_POST
def inherit_from_parent(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_requested_agent(request, agent)
    inherit_context(row, by=request.actor)
    messages.success(
        request,
        _("%(agent)s now reads what its parent reads.") % {"agent": row}
        if row.parent_id
        else _("Choice dropped."),
    )
    return redirect(context_url(request, row))


# --- plumbing ------------------------------------------------------------------------------------------


def get_requested_agent(request: WorkspaceRequest, slug: str) -> Agent:
    rows = list_agents(request.workspace).prefetch_related(None)
    return get_object_or_404(rows, slug=slug)


def context_url(request: WorkspaceRequest, agent: Agent) -> str:
    return reverse("contexts:detail", args=[request.workspace.slug, agent.slug])


def save_context_form(request: WorkspaceRequest, agent: Agent, form: ContextForm) -> None:
    said = form.cleaned_data
    choose_context(
        agent,
        said["source"],
        said["harness"],
        working_directory=said["working_directory"],
        expected=said["revision"],
        by=request.actor,
    )


def build_conflict_form(request: WorkspaceRequest, agent: Agent) -> ContextForm:
    """What was typed, on top of what someone else has saved since: sent again, it counts."""
    said = request.POST.copy()
    said["revision"] = str(agent.revision)
    form = ContextForm(said, agent=agent)
    form.add_error(
        None, _("Someone changed this agent after you opened the page. Look once more, then save.")
    )
    return form


def build_context_page(
    request: WorkspaceRequest, agent: Agent, form: ContextForm | None = None
) -> dict[str, Any]:
    shelf = AgentContextLoader(agent, is_whole=True)
    mark, choice = (
        hash_page_state(get_context_fingerprint(agent, shelf.outlook)),
        get_context_choice(agent, shelf.above),
    )
    return build_context_section(shelf, choice) | {
        "agent": agent,
        "mark": mark,
        "choice": choice,
        "has_own": choice.chosen_by is not None and choice.chosen_by.pk == agent.pk,
        "form": form or ContextForm(agent=agent, initial=get_initial_values(agent, choice)),
    }


def get_initial_values(agent: Agent, choice: ContextChoice) -> dict[str, Any]:
    row = choice.row
    return {
        "source": row.source_id if row else None,
        "harness": row.harness if row else "plain",
        "working_directory": agent.working_directory,
        "revision": agent.revision,
    }


def build_context_section(shelf: AgentContextLoader, choice: ContextChoice) -> dict[str, Any]:
    """The files and skills as they stand, and whatever of them is held back."""
    shown, waiting = get_context_and_pending(shelf.agent, shelf)
    return {
        "given": shown,
        "choice": choice,
        "grave": [file for file in shown.withheld if file.state in UNUSABLE_STATES],
        "gone": [file for file in shown.withheld if file.state not in UNUSABLE_STATES],
        "waiting": waiting,
        "characters": sum(len(one.text) for one in shown.files),
    }


urlpatterns: list[URLPattern] = [
    path("", detail, name="detail"),
    path("live/", poll_context, name="live"),
    path("choose/", choose_source, name="choose"),
    path("inherit/", inherit_from_parent, name="inherit"),
]
urls = (urlpatterns, "contexts")
