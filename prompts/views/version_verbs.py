"""What people do with versions: build anew, roll production back, let it follow, move their own labels."""

from collections.abc import Callable

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.roles import Permission
from personas.tenancy import WorkspaceRequest, needs
from prompts.forms.labels import LabelForm, RollBackForm
from prompts.models import AgentPrompt
from prompts.services.building import rebuild_agent
from prompts.services.labelling import follow_again, move_label, roll_back, take_off_label
from prompts.views.finding import found_agent, found_prompt, found_version
from skills.views.returning import way_back

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


@needs(EDIT)
@require_POST
def rebuild(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = found_agent(request, agent)
    try:
        built = rebuild_agent(row)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        if built.versions:
            messages.success(request, f"Built anew: {len(built.versions)} with other words than before.")
        elif not built.failed:
            messages.success(request, "Built anew: every word is as it was, so there is no new version.")
        if built.failed:
            messages.error(request, "Not everything could be built: see what is said below.")
    return redirect(way_back(request, reverse("versions:list", args=[request.workspace.slug, agent])))


@needs(APPROVE)
@require_POST
def put_back(request: WorkspaceRequest, prompt: int) -> HttpResponse:
    row, form = found_prompt(request, prompt), RollBackForm(request.POST)
    number = form.cleaned_data["to"] if form.is_valid() else None
    to = found_version(row, number) if number else None

    def verb() -> str:
        [move] = roll_back([row], by=request.actor, note=form.cleaned_data["note"], to=to)
        where = move.version.number if move.version else "nowhere"
        return f"Production is back at version {where}, and stays there until someone releases."

    return carried_out(request, row, form, verb)


@needs(APPROVE)
@require_POST
def follow(request: WorkspaceRequest, prompt: int) -> HttpResponse:
    row = found_prompt(request, prompt)

    def verb() -> str:
        follow_again(row, by=request.actor)
        return "Production follows each build again."

    return carried_out(request, row, None, verb)


@needs(EDIT)
@require_POST
def label(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    row, form = found_prompt(request, prompt), LabelForm(request.POST)
    version = found_version(row, number)

    def verb() -> str:
        said = form.cleaned_data
        moved = move_label(
            row, said["label"], version, expected=form.expected(), by=request.actor, note=said["note"]
        )
        where = f"at version {number}"
        return f"“{said['label']}” is {where} now." if moved else f"“{said['label']}” was {where} already."

    return carried_out(request, row, form, verb)


@needs(EDIT)
@require_POST
def take_off(request: WorkspaceRequest, prompt: int, label: str) -> HttpResponse:
    row = found_prompt(request, prompt)

    def verb() -> str:
        take_off_label(row, label, by=request.actor)
        return f"“{label}” is taken off."

    return carried_out(request, row, None, verb)


def carried_out(
    request: WorkspaceRequest, prompt: AgentPrompt, form: Form | None, verb: Callable[[], str]
) -> HttpResponse:
    """Do it, or say why not, and go back to where the button stood."""
    if form is not None and not form.is_valid():
        for name, said in form.errors.items():
            title = form.fields[name].label or name.capitalize() if name in form.fields else ""
            messages.error(request, f"{title}: {' '.join(map(str, said))}".removeprefix(": "))
    else:
        try:
            messages.success(request, verb())
        except DomainError as error:
            messages.error(request, error.message)
    timeline = reverse("versions:list", args=[request.workspace.slug, prompt.agent.slug])
    return redirect(way_back(request, f"{timeline}?channel={prompt.channel.slug}"))


urlpatterns: list[URLPattern] = [
    path("agents/<slug:agent>/versions/rebuild/", rebuild, name="rebuild"),
    path("prompts/<int:prompt>/roll-back/", put_back, name="roll-back"),
    path("prompts/<int:prompt>/follow/", follow, name="follow"),
    path("prompts/<int:prompt>/versions/<int:number>/label/", label, name="label"),
    path("prompts/<int:prompt>/labels/<slug:label>/remove/", take_off, name="remove-label"),
]
