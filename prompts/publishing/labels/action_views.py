"""Form actions on versions and labels: rebuild, roll back and unpin production, move and remove labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.display_names import get_display_name
from personas.ui.responses import get_back_url
from personas.ui.review import Reviewed
from personas.ui.toasts import add_toast
from prompts.models import AgentPrompt, LabelMove
from prompts.page_lookup import get_agent_or_404, get_prompt_or_404, get_version_or_404
from prompts.publishing.builds.services import rebuild_agent
from prompts.publishing.labels.forms import LabelForm, RollBackForm
from prompts.publishing.labels.move_queries import find_prompt_label
from prompts.publishing.labels.services import move_label, remove_label, roll_back, unpin_production

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


@dataclass(frozen=True)
class LabelActionResult:
    """The message to show after an action, and the view of this module that undoes the action, if any."""

    message: str
    undo_view: str = ""
    undo_args: tuple[object, ...] = ()
    undo_fields: Mapping[str, str] = field(default_factory=dict)


@require_permission(EDIT, Reviewed(gettext_lazy("Rebuild")))
@require_POST
def rebuild_agent_view(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_agent_or_404(request, agent)
    try:
        result = rebuild_agent(row)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        if result.versions:
            message = _("Rebuilt. New versions: %(count)s.")
            messages.success(request, message % {"count": len(result.versions)})
        elif not result.failed:
            messages.success(request, _("Rebuilt. Nothing changed, so no new version was created."))
        if result.failed:
            messages.error(request, _("Some prompts could not be built. The reasons are below."))
    return redirect(get_back_url(request, reverse("versions:list", args=[request.workspace.slug, agent])))


@require_permission(APPROVE, Reviewed(gettext_lazy("Roll back")))
@require_POST
def roll_back_view(request: WorkspaceRequest, prompt: int) -> HttpResponse:
    row, form = get_prompt_or_404(request, prompt), RollBackForm(request.POST)
    number = form.cleaned_data["to"] if form.is_valid() else None
    to = get_version_or_404(row, number) if number else None

    def action() -> LabelActionResult:
        was_following = not row.is_pinned
        [move] = roll_back([row], by=request.actor, note=form.cleaned_data["note"], to=to)
        where = move.version.number if move.version else "nowhere"
        message = _(
            "Rolled back production to version %(version)s. It stays pinned until the next release."
        ) % {"version": where}
        if was_following and not row.is_reviewed:
            return LabelActionResult(message, "unpin")
        return LabelActionResult(message, "roll-back", undo_fields=get_undo_fields(move))

    return run_label_action(request, row, form, action)


@require_permission(APPROVE, Reviewed(gettext_lazy("Resume")))
@require_POST
def unpin_production_view(request: WorkspaceRequest, prompt: int) -> HttpResponse:
    row = get_prompt_or_404(request, prompt)

    def action() -> LabelActionResult:
        unpin_production(row, by=request.actor)
        return LabelActionResult(_("Automatic releases resumed."))

    return run_label_action(request, row, None, action)


@require_permission(EDIT, Reviewed(gettext_lazy("Move label")))
@require_POST
def move_label_view(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    row, form = get_prompt_or_404(request, prompt), LabelForm(request.POST)
    version = get_version_or_404(row, number)

    def action() -> LabelActionResult:
        name, note = form.cleaned_data["label"], form.cleaned_data["note"]
        move = move_label(
            row, name, version, expected=form.get_expected_version_id(), by=request.actor, note=note
        )
        if move is None:
            return LabelActionResult(
                _("“%(name)s” already points to version %(number)s.") % {"name": name, "number": number}
            )
        message = _("“%(name)s” now points to version %(number)s.") % {"name": name, "number": number}
        before = move.previous_version
        if before is None:
            return LabelActionResult(message, "remove-label", (name,))
        return LabelActionResult(
            message, "label", (before.number,), {"label": name, "seen": f"{name}:{version.pk}"}
        )

    return run_label_action(request, row, form, action)


@require_permission(EDIT, Reviewed())
@require_POST
def remove_label_view(request: WorkspaceRequest, prompt: int, label: str) -> HttpResponse:
    row = get_prompt_or_404(request, prompt)

    def action() -> LabelActionResult:
        before = find_prompt_label(row, label)
        remove_label(row, label, by=request.actor)
        number = before.version.number if before else 0
        return LabelActionResult(
            _("Label “%(label)s” removed.") % {"label": label}, "label", (number,), {"label": label}
        )

    return run_label_action(request, row, None, action)


def get_undo_fields(move: LabelMove) -> dict[str, str]:
    """Return the form fields of a second roll-back that moves production to the version it just left."""
    number = move.previous_version.number if move.previous_version else ""
    return {"to": str(number), "note": "The rollback was undone."}


def run_label_action(
    request: WorkspaceRequest, prompt: AgentPrompt, form: Form | None, action: Callable[[], LabelActionResult]
) -> HttpResponse:
    """Run the action, show its result or error as a message, and redirect to the page with the form."""
    if form is not None and not form.is_valid():
        for name, errors in form.errors.items():
            title = form.fields[name].label or get_display_name(name) if name in form.fields else ""
            messages.error(request, f"{title}: {' '.join(map(str, errors))}".removeprefix(": "))
    else:
        try:
            result = action()
        except DomainError as error:
            messages.error(request, error.message)
        else:
            add_undo_message(request, prompt, result)
    timeline = reverse("versions:list", args=[request.workspace.slug, prompt.agent.slug])
    return redirect(get_back_url(request, f"{timeline}?channel={prompt.channel.slug}"))


def add_undo_message(request: WorkspaceRequest, prompt: AgentPrompt, result: LabelActionResult) -> None:
    undo_url = ""
    if result.undo_view:
        undo_url = reverse(
            f"versions:{result.undo_view}", args=[request.workspace.slug, prompt.pk, *result.undo_args]
        )
    back = {"back": url} if (url := get_back_url(request, "")) else {}
    add_toast(request, result.message, undo_url=undo_url, undo_fields={**result.undo_fields, **back})


urlpatterns: list[URLPattern] = [
    path("agents/<slug:agent>/versions/rebuild/", rebuild_agent_view, name="rebuild"),
    path("prompts/<int:prompt>/roll-back/", roll_back_view, name="roll-back"),
    path("prompts/<int:prompt>/unpin/", unpin_production_view, name="unpin"),
    path("prompts/<int:prompt>/versions/<int:number>/label/", move_label_view, name="label"),
    path("prompts/<int:prompt>/labels/<slug:label>/remove/", remove_label_view, name="remove-label"),
]
