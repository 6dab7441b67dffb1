"""What an agent reads from files, and from where."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import Conflict, Invalid
from personas.models import Agent
from personas.roles import Permission
from personas.selectors import agents_of
from personas.tenancy.middleware import WorkspaceRequest, needs
from personas.ui.responses import mark_of, unchanged
from skills.agent_context.effective import OneAgent
from skills.agent_context.forms import ContextForm
from skills.agent_context.page import Choice, choice_of, context_of, context_state
from skills.agent_context.services import choose_context, inherit_context
from skills.agent_context.withheld import GRAVE

TEMPLATE = "skills/contexts/detail.html"


def detail(request: WorkspaceRequest, agent: str) -> HttpResponse:
    return render(request, TEMPLATE, page(request, found(request, agent)))


def live(request: WorkspaceRequest, agent: str) -> HttpResponse:
    """The moving part of the page; empty-handed while nothing has changed."""
    row = found(request, agent)
    shelf = OneAgent(row, is_whole=True)
    mark = mark_of(context_state(row, shelf.outlook))
    if answer := unchanged(request, mark):
        return answer
    shown = given(shelf, choice_of(row, shelf.above)) | {"agent": row, "mark": mark, "is_news": True}
    return render(request, "skills/contexts/_live.html", shown)


@needs(Permission.EDIT)
@require_POST
def choose(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = found(request, agent)
    form = ContextForm(request.POST, agent=row)
    if form.is_valid():
        try:
            carry_out(request, row, form)
        except Invalid as error:
            form.take_errors(error)
        except Conflict:
            return render(request, TEMPLATE, page(request, row, late(request, row)), status=409)
        else:
            messages.success(request, _("Saved what %(agent)s reads.") % {"agent": row})
            return redirect(address(request, row))
    return render(request, TEMPLATE, page(request, row, form), status=422)


@needs(Permission.EDIT)
@require_POST
def inherit(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = found(request, agent)
    inherit_context(row, by=request.actor)
    messages.success(
        request,
        _("%(agent)s now reads what its parent reads.") % {"agent": row}
        if row.parent_id
        else _("Choice dropped."),
    )
    return redirect(address(request, row))


# --- plumbing ------------------------------------------------------------------------------------------


def found(request: WorkspaceRequest, slug: str) -> Agent:
    rows = agents_of(request.workspace).prefetch_related(None)
    return get_object_or_404(rows, slug=slug)


def address(request: WorkspaceRequest, agent: Agent) -> str:
    return reverse("contexts:detail", args=[request.workspace.slug, agent.slug])


def carry_out(request: WorkspaceRequest, agent: Agent, form: ContextForm) -> None:
    said = form.cleaned_data
    choose_context(
        agent,
        said["source"],
        said["harness"],
        working_directory=said["working_directory"],
        expected=said["revision"],
        by=request.actor,
    )


def late(request: WorkspaceRequest, agent: Agent) -> ContextForm:
    """What was typed, on top of what someone else has saved since: sent again, it counts."""
    said = request.POST.copy()
    said["revision"] = str(agent.revision)
    form = ContextForm(said, agent=agent)
    form.add_error(
        None, _("Someone changed this agent after you opened the page. Look once more, then save.")
    )
    return form


def page(request: WorkspaceRequest, agent: Agent, form: ContextForm | None = None) -> dict[str, Any]:
    shelf = OneAgent(agent, is_whole=True)
    mark, choice = mark_of(context_state(agent, shelf.outlook)), choice_of(agent, shelf.above)
    return given(shelf, choice) | {
        "agent": agent,
        "mark": mark,
        "choice": choice,
        "has_own": choice.chosen_by is not None and choice.chosen_by.pk == agent.pk,
        "form": form or ContextForm(agent=agent, initial=initial(agent, choice)),
    }


def initial(agent: Agent, choice: Choice) -> dict[str, Any]:
    row = choice.row
    return {
        "source": row.source_id if row else None,
        "harness": row.harness if row else "plain",
        "working_directory": agent.working_directory,
        "revision": agent.revision,
    }


def given(shelf: OneAgent, choice: Choice) -> dict[str, Any]:
    """The files and skills as they stand, and whatever of them is held back."""
    shown, waiting = context_of(shelf.agent, shelf)
    return {
        "given": shown,
        "choice": choice,
        "grave": [file for file in shown.withheld if file.state in GRAVE],
        "gone": [file for file in shown.withheld if file.state not in GRAVE],
        "waiting": waiting,
        "characters": sum(len(one.text) for one in shown.files),
    }


urlpatterns: list[URLPattern] = [
    path("", detail, name="detail"),
    path("live/", live, name="live"),
    path("choose/", choose, name="choose"),
    path("inherit/", inherit, name="inherit"),
]
urls = (urlpatterns, "contexts")
