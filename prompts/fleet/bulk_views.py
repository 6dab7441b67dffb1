"""What people do with many prompts at once: release, roll back, rebuild; all that were chosen, or none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from personas.errors import DomainError, InvalidInput
from personas.models import Workspace
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, describe_required_roles, require_permission
from personas.ui.responses import get_back_url
from prompts.builds.causes import request_rebuild
from prompts.builds.middleware import get_rebuild_counts
from prompts.builds.progress import list_agent_channels
from prompts.builds.services import rebuild_agents
from prompts.labels.forms import RollBackForm
from prompts.labels.services import roll_back
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.page_lookup import MAX_URL_NUMBER
from prompts.tasks import enqueue_rebuilds
from prompts.versions.timeline import HEAVY_COLUMNS, select_latest_version


@dataclass(frozen=True)
class RollbackTarget:
    """One prompt: where production is, and where it was before; or why it cannot go back."""

    prompt: AgentPrompt
    present: PromptVersion | None
    target: PromptVersion | None
    reason: str = ""

    @property
    def seen(self) -> str:
        """What somebody agrees to: whatever moves meanwhile makes it another word."""
        prompt, (present, target) = self.places
        return f"{prompt}:{present}:{target}"

    @property
    def places(self) -> tuple[int, tuple[int, int]]:
        present, target = self.present, self.target
        return self.prompt.pk, (present.pk if present else 0, target.pk if target else 0)


def list_rollback_targets(workspace: Workspace, prompts: Sequence[AgentPrompt]) -> list[RollbackTarget]:
    """Two questions, however many prompts; the same rule as the verb has for each."""
    ids = [prompt.pk for prompt in prompts]
    labels = PromptLabel.objects.in_workspace(workspace).filter(name=PRODUCTION, prompt__in=ids)
    moves = LabelMove.objects.in_workspace(workspace).filter(
        prompt=OuterRef("prompt_id"), label=PRODUCTION, version__number__lt=OuterRef("version__number")
    )
    target = Subquery(moves.order_by("-sequence").values("version")[:1])
    places = {
        prompt: (present, earlier)
        for prompt, present, earlier in labels.annotate(target=target).values_list(
            "prompt_id", "version_id", "target"
        )
    }
    wanted = {key for pair in places.values() for key in pair if key}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=wanted)
    versions = {version.pk: version for version in rows.defer(*HEAVY_COLUMNS)}
    return [
        build_rollback_target(prompt, *(versions.get(key) for key in places.get(prompt.pk, (0, 0))))
        for prompt in prompts
    ]


def build_rollback_target(
    prompt: AgentPrompt, present: PromptVersion | None, target: PromptVersion | None
) -> RollbackTarget:
    if present is None:
        return RollbackTarget(prompt, None, None, _("Nothing is in production yet."))
    if target is None:
        return RollbackTarget(prompt, present, None, _("Production was never at an earlier version."))
    return RollbackTarget(prompt, present, target)


AgentPrompts = Sequence[AgentPrompt]
# As many as a release has room for.
MAX_BULK_PROMPTS = 400


@require_permission(Permission.READ)
def run_bulk_action(request: WorkspaceRequest) -> HttpResponse:
    """The gate lets every member in; what it takes depends on the verb."""
    verb = BULK_ACTIONS.get(request.POST.get("verb", ""))
    needed = verb[0] if verb else Permission.EDIT
    if not has_permission(request.membership.role, needed):
        raise PermissionDenied(describe_required_roles(needed))
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if verb is None:
        raise Http404("There is no such verb.")
    prompts = get_selected_prompts(request)
    if not prompts or len(prompts) > MAX_BULK_PROMPTS:
        few = _("Choose at least one prompt.")
        messages.error(
            request, few if not prompts else _("Choose at most %d prompts at once.") % MAX_BULK_PROMPTS
        )
        return redirect_back(request)
    return verb[1](request, prompts)


def get_selected_prompts(request: WorkspaceRequest) -> AgentPrompts:
    """What was ticked; one id that is not of this workspace, or not in use, refuses all of them."""
    said = set(request.POST.getlist("chosen"))
    ids = {int(key) for key in said if key.isascii() and key.isdecimal() and len(key) < 11}
    rows = AgentPrompt.objects.in_workspace(request.workspace).filter(
        pk__in=[key for key in ids if key <= MAX_URL_NUMBER], is_live=True
    )
    found = list(select_latest_version(rows).order_by("agent__name", "channel__name", "pk"))
    if len(found) != len(said):
        raise Http404("Not all of these prompts are here.")
    return found


def redirect_back(request: WorkspaceRequest) -> HttpResponse:
    return redirect(get_back_url(request, reverse("home", args=[request.workspace.slug])))


def bulk_release(request: WorkspaceRequest, prompts: AgentPrompts) -> HttpResponse:
    """On to the page on which a release is asked for, with these ticked."""
    ids = ",".join(str(prompt.pk) for prompt in prompts)
    address = reverse("releases:new", args=[request.workspace.slug])
    return redirect(f"{address}?{urlencode({'prompts': ids}).replace('%2C', ',')}")


# --- rebuild -------------------------------------------------------------------------------------------


def bulk_rebuild(request: WorkspaceRequest, prompts: AgentPrompts) -> HttpResponse:
    """Builds work by the agent, on all its channels: few are built now, many are left to the workers."""
    agents = {prompt.agent_id for prompt in prompts}
    count = list_agent_channels(request.workspace, agents).count()
    request_rebuild(request.workspace, agents, by=request.actor)
    if count > settings.DRAMATIS_BUILD_AT_ONCE:
        get_rebuild_counts().pending += count
        enqueue_rebuilds(request.workspace.pk, sorted(agents))
        return redirect_back(request)
    built = rebuild_agents(request.workspace, agents)
    words = ngettext("Built %(count)d prompt anew", "Built %(count)d prompts anew", count - built.failed)
    words = words % {"count": count - built.failed}
    fresh = len(built.versions)
    more = ngettext("%(count)d has other words now", "%(count)d have other words now", fresh)
    more = more % {"count": fresh} if fresh else _("every word is as it was")
    if count > built.failed:
        messages.success(request, f"{words}: {more}.")
    if built.failed:
        failed = ngettext(
            "%(count)d prompt could not be built and stays as it was.",
            "%(count)d prompts could not be built and stay as they were.",
            built.failed,
        )
        messages.error(request, failed % {"count": built.failed})
    return redirect_back(request)


# --- roll back -----------------------------------------------------------------------------------------


def bulk_roll_back(request: WorkspaceRequest, prompts: AgentPrompts) -> HttpResponse:
    """First the page that says what would move; then, with a reason, the move itself."""
    found = list_rollback_targets(request.workspace, prompts)
    moving = [one for one in found if one.target]
    if not moving:
        messages.error(request, _("Nothing to roll back: production was never anywhere before."))
        return redirect_back(request)
    if "seen" not in request.POST:
        return render_rollback_page(request, found, RollBackForm())
    form = RollBackForm(request.POST)
    if set(request.POST.getlist("seen")) != {one.seen for one in moving}:
        form.add_error(None, _("Something moved after you looked. Look again, then roll back."))
    elif form.is_valid() and (moves := try_roll_back(request, form, moving)):
        words = ngettext(
            "Rolled %(count)d prompt back in production. Builds leave it there until someone releases.",
            "Rolled %(count)d prompts back in production. Builds leave them there until someone releases.",
            len(moves),
        )
        messages.success(request, words % {"count": len(moves)})
        return redirect_back(request)
    return render_rollback_page(request, found, form, status=422)


def try_roll_back(
    request: WorkspaceRequest, form: RollBackForm, moving: Sequence[RollbackTarget]
) -> Sequence[LabelMove]:
    """All in one transaction; what the verb refuses stands on the form."""
    prompts, seen = [one.prompt for one in moving], dict(one.places for one in moving)
    try:
        # Looked at once more by the verb, which holds them: a second click may be as quick as the first.
        return roll_back(prompts, by=request.actor, note=form.cleaned_data["note"], expected=seen)
    except InvalidInput as error:
        form.add_service_errors(error)
    except DomainError as error:
        form.add_error(None, error.message)
    return []


def render_rollback_page(
    request: WorkspaceRequest, found: Sequence[RollbackTarget], form: RollBackForm, status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "moving": [one for one in found if one.target],
        "staying": [one for one in found if not one.target],
        "back": get_back_url(request, reverse("home", args=[request.workspace.slug])),
    }
    return render(request, "prompts/fleet/roll_back.html", context, status=status)


BULK_ACTIONS: dict[str, tuple[Permission, Callable[[WorkspaceRequest, AgentPrompts], HttpResponse]]] = {
    "release": (Permission.EDIT, bulk_release),
    "rebuild": (Permission.EDIT, bulk_rebuild),
    "roll-back": (Permission.APPROVE, bulk_roll_back),
}
