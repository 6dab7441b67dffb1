"""What people do with versions: build anew, roll production back, let it follow, move their own labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.models import ReleasePolicy
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from personas.ui.display_names import title_of
from personas.ui.responses import back_or
from personas.ui.toasts import say
from prompts.builds.services import rebuild_agent
from prompts.labels.forms import LabelForm, RollBackForm
from prompts.labels.services import (
    current_label,
    follow_again,
    move_label,
    roll_back,
    take_off_label,
)
from prompts.models import AgentPrompt, LabelMove
from prompts.page_lookup import found_agent, found_prompt, found_version

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


@dataclass(frozen=True)
class Said:
    """What was done, and the verb of this module that takes it back."""

    words: str
    undo: str = ""
    place: tuple[object, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


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
            words = _("Built anew: %(count)s with other words than before.")
            messages.success(request, words % {"count": len(built.versions)})
        elif not built.failed:
            messages.success(request, _("Built anew: every word is as it was, so there is no new version."))
        if built.failed:
            messages.error(request, _("Not everything could be built: see what is said below."))
    return redirect(back_or(request, reverse("versions:list", args=[request.workspace.slug, agent])))


@needs(APPROVE)
@require_POST
def put_back(request: WorkspaceRequest, prompt: int) -> HttpResponse:
    row, form = found_prompt(request, prompt), RollBackForm(request.POST)
    number = form.cleaned_data["to"] if form.is_valid() else None
    to = found_version(row, number) if number else None

    def verb() -> Said:
        was_following = not row.is_held
        [move] = roll_back([row], by=request.actor, note=form.cleaned_data["note"], to=to)
        where = move.version.number if move.version else "nowhere"
        words = _("Production is back at version %(version)s, and stays there until someone releases.") % {
            "version": where
        }
        if was_following and row.agent.release_policy == ReleasePolicy.AUTOMATIC:
            return Said(words, "follow")
        return Said(words, "roll-back", fields=forth_again(move))

    return carried_out(request, row, form, verb)


@needs(APPROVE)
@require_POST
def follow(request: WorkspaceRequest, prompt: int) -> HttpResponse:
    row = found_prompt(request, prompt)

    def verb() -> Said:
        follow_again(row, by=request.actor)
        return Said(_("Production follows each build again."))

    return carried_out(request, row, None, verb)


@needs(EDIT)
@require_POST
def label(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    row, form = found_prompt(request, prompt), LabelForm(request.POST)
    version = found_version(row, number)

    def verb() -> Said:
        said = form.cleaned_data
        name, note = said["label"], said["note"]
        move = move_label(row, name, version, expected=form.expected(), by=request.actor, note=note)
        if move is None:
            return Said(_("“%(name)s” was at version %(number)s already.") % {"name": name, "number": number})
        words = _("“%(name)s” is at version %(number)s now.") % {"name": name, "number": number}
        before = move.previous_version
        if before is None:
            return Said(words, "remove-label", (name,))
        return Said(words, "label", (before.number,), {"label": name, "seen": f"{name}:{version.pk}"})

    return carried_out(request, row, form, verb)


@needs(EDIT)
@require_POST
def take_off(request: WorkspaceRequest, prompt: int, label: str) -> HttpResponse:
    row = found_prompt(request, prompt)

    def verb() -> Said:
        before = current_label(row, label)
        take_off_label(row, label, by=request.actor)
        number = before.version.number if before else 0
        return Said(_("“%(label)s” is taken off.") % {"label": label}, "label", (number,), {"label": label})

    return carried_out(request, row, None, verb)


def forth_again(move: LabelMove) -> dict[str, str]:
    """Production was there a moment ago, so going back may also lead forward."""
    number = move.previous_version.number if move.previous_version else ""
    return {"to": str(number), "note": "The roll-back was undone."}


def carried_out(
    request: WorkspaceRequest, prompt: AgentPrompt, form: Form | None, verb: Callable[[], Said]
) -> HttpResponse:
    """Do it, or say why not, and go back to where the button stood."""
    if form is not None and not form.is_valid():
        for name, said in form.errors.items():
            title = form.fields[name].label or title_of(name) if name in form.fields else ""
            messages.error(request, f"{title}: {' '.join(map(str, said))}".removeprefix(": "))
    else:
        try:
            done = verb()
        except DomainError as error:
            messages.error(request, error.message)
        else:
            say_with_a_way_back(request, prompt, done)
    timeline = reverse("versions:list", args=[request.workspace.slug, prompt.agent.slug])
    return redirect(back_or(request, f"{timeline}?channel={prompt.channel.slug}"))


def say_with_a_way_back(request: WorkspaceRequest, prompt: AgentPrompt, done: Said) -> None:
    undo = ""
    if done.undo:
        undo = reverse(f"versions:{done.undo}", args=[request.workspace.slug, prompt.pk, *done.place])
    back = {"back": place} if (place := back_or(request, "")) else {}
    say(request, done.words, undo_url=undo, undo_fields={**done.fields, **back})


urlpatterns: list[URLPattern] = [
    path("agents/<slug:agent>/versions/rebuild/", rebuild, name="rebuild"),
    path("prompts/<int:prompt>/roll-back/", put_back, name="roll-back"),
    path("prompts/<int:prompt>/follow/", follow, name="follow"),
    path("prompts/<int:prompt>/versions/<int:number>/label/", label, name="label"),
    path("prompts/<int:prompt>/labels/<slug:label>/remove/", take_off, name="remove-label"),
]
