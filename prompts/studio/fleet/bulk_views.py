"""Bulk actions on the prompts selected on the fleet page: release, roll back, rebuild."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from personas.errors import DomainError, InvalidInput
from personas.models import Workspace
from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, describe_required_roles, require_permission
from personas.ui.responses import REVIEWED_FIELD, create_review_token, get_back_url
from personas.ui.review import Reviewed, Verb
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, PromptLabel, PromptVersion, ReleaseItem
from prompts.page_lookup import MAX_URL_NUMBER
from prompts.publishing.builds.causes import request_rebuild
from prompts.publishing.builds.middleware import get_rebuild_counts
from prompts.publishing.builds.progress import list_agent_channels
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.forms import RollBackForm
from prompts.publishing.labels.services import roll_back
from prompts.publishing.releases.changes import group_release_changes
from prompts.publishing.review.change_review import build_release_review
from prompts.publishing.review.services import hash_release_effect
from prompts.publishing.versions.selectors import list_erased_versions
from prompts.publishing.versions.timeline import HEAVY_COLUMNS, select_latest_version
from prompts.tasks import enqueue_rebuilds


@dataclass(frozen=True)
class RollbackTarget:
    """The current and the earlier production version of a prompt, or why it cannot be rolled back."""

    prompt: AgentPrompt
    current: PromptVersion | None
    target: PromptVersion | None
    reason: str = ""

    @property
    def confirmation(self) -> str:
        """The form value submitted with the confirmation.

        It contains the version ids shown to the user, so it differs if a label has moved in the meantime.
        """
        prompt, (current, target) = self.version_ids
        return f"{prompt}:{current}:{target}"

    @property
    def version_ids(self) -> tuple[int, tuple[int, int]]:
        current, target = self.current, self.target
        return self.prompt.pk, (current.pk if current else 0, target.pk if target else 0)


def list_rollback_targets(workspace: Workspace, prompts: Sequence[AgentPrompt]) -> list[RollbackTarget]:
    """Find the rollback target of each prompt with two queries, by the same rule as `roll_back`.

    The target is the last production version with a lower number than the current one.
    """
    ids = [prompt.pk for prompt in prompts]
    labels = PromptLabel.objects.in_workspace(workspace).filter(name=PRODUCTION, prompt__in=ids)
    moves = LabelMove.objects.in_workspace(workspace).filter(
        prompt=OuterRef("prompt_id"), label=PRODUCTION, version__number__lt=OuterRef("version__number")
    )
    target = Subquery(moves.order_by("-sequence").values("version")[:1])
    version_ids = {
        prompt: (current, earlier)
        for prompt, current, earlier in labels.annotate(target=target).values_list(
            "prompt_id", "version_id", "target"
        )
    }
    needed = {key for pair in version_ids.values() for key in pair if key}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=needed)
    versions = {version.pk: version for version in rows.defer(*HEAVY_COLUMNS)}
    erased = list_erased_versions(workspace, {target for _current, target in version_ids.values() if target})
    return [
        build_rollback_target(
            prompt, *(versions.get(key) for key in version_ids.get(prompt.pk, (0, 0))), erased=erased
        )
        for prompt in prompts
    ]


def build_rollback_target(
    prompt: AgentPrompt, current: PromptVersion | None, target: PromptVersion | None, *, erased: set[int]
) -> RollbackTarget:
    if current is None:
        return RollbackTarget(prompt, None, None, _("Nothing in production yet."))
    if target is None:
        return RollbackTarget(prompt, current, None, _("Production has no earlier version."))
    if target.pk in erased:
        message = _("Version %(number)s contains erased text and cannot be served.")
        return RollbackTarget(prompt, current, None, message % {"number": target.number})
    return RollbackTarget(prompt, current, target)


AgentPrompts = Sequence[AgentPrompt]
# The same as the maximum number of prompts in the form that requests a release.
MAX_BULK_PROMPTS = 400


def get_bulk_verb(request: HttpRequest) -> Verb:
    return BULK_ACTIONS[request.POST["verb"]][2]


@require_permission(Permission.READ, Reviewed(get_bulk_verb))
def run_bulk_action(request: WorkspaceRequest) -> HttpResponse:
    """Run the submitted action; the required permission depends on the action."""
    action = BULK_ACTIONS.get(request.POST.get("verb", ""))
    permission = action[0] if action else Permission.EDIT
    if not has_permission(request.membership.role, permission):
        raise PermissionDenied(describe_required_roles(permission))
    if request.method != "POST":
        # For example after a reload, or when the user comes back from the sign-in page.
        response = render(request, "prompts/fleet/no_selection.html", status=405)
        response["Allow"] = "POST"
        return response
    if action is None:
        raise Http404("Unknown action.")
    prompts = get_selected_prompts(request)
    if not prompts or len(prompts) > MAX_BULK_PROMPTS:
        message = _("Select at least one prompt.")
        messages.error(
            request, message if not prompts else _("Select at most %d prompts.") % MAX_BULK_PROMPTS
        )
        return redirect_back(request)
    return action[1](request, prompts)


def get_selected_prompts(request: WorkspaceRequest) -> AgentPrompts:
    """Return the selected prompts; 404 if one of them is not a live prompt of this workspace."""
    values = set(request.POST.getlist("chosen"))
    ids = {int(key) for key in values if key.isascii() and key.isdecimal() and len(key) < 11}
    rows = AgentPrompt.objects.in_workspace(request.workspace).filter(
        pk__in=[key for key in ids if key <= MAX_URL_NUMBER], is_active=True
    )
    prompts = list(select_latest_version(rows).order_by("agent__name", "channel__name", "pk"))
    if len(prompts) != len(values):
        raise Http404("Some of these prompts were not found.")
    return prompts


def redirect_back(request: WorkspaceRequest) -> HttpResponse:
    return redirect(get_back_url(request, reverse("home", args=[request.workspace.slug])))


def bulk_release(request: WorkspaceRequest, prompts: AgentPrompts) -> HttpResponse:
    """Redirect to the release request form with these prompts selected."""
    ids = ",".join(str(prompt.pk) for prompt in prompts)
    url = reverse("releases:new", args=[request.workspace.slug])
    return redirect(f"{url}?{urlencode({'prompts': ids}).replace('%2C', ',')}")


# --- rebuild -------------------------------------------------------------------------------------------


@transaction.atomic
def bulk_rebuild(request: WorkspaceRequest, prompts: AgentPrompts) -> HttpResponse:
    """Rebuild the agents of the prompts on all their channels.

    The workers build them if there are more than DRAMATIS_BUILD_AT_ONCE; otherwise this request does.
    """
    agents = {prompt.agent_id for prompt in prompts}
    count = list_agent_channels(request.workspace, agents).count()
    request_rebuild(request.workspace, agents, by=request.actor)
    if count > settings.DRAMATIS_BUILD_AT_ONCE:
        get_rebuild_counts().pending += count
        transaction.on_commit(partial(enqueue_rebuilds, request.workspace.pk), robust=True)
        return redirect_back(request)
    built = rebuild_agents(request.workspace, agents)
    message = ngettext("Rebuilt %(count)d prompt", "Rebuilt %(count)d prompts", count - built.failed)
    message = message % {"count": count - built.failed}
    new_versions = len(built.versions)
    detail = ngettext("%(count)d has a new version", "%(count)d have a new version", new_versions)
    detail = detail % {"count": new_versions} if new_versions else _("the text is unchanged")
    if count > built.failed:
        messages.success(request, f"{message}: {detail}.")
    if built.failed:
        failure = ngettext(
            "%(count)d prompt could not be built and is unchanged.",
            "%(count)d prompts could not be built and are unchanged.",
            built.failed,
        )
        messages.error(request, failure % {"count": built.failed})
    return redirect_back(request)


# --- roll back -----------------------------------------------------------------------------------------


def bulk_roll_back(request: WorkspaceRequest, prompts: AgentPrompts) -> HttpResponse:
    """Show which versions would return to production; roll back after confirmation with a note."""
    targets = list_rollback_targets(request.workspace, prompts)
    moving = [target for target in targets if target.target]
    if not moving:
        messages.error(
            request,
            _(
                "Nothing to roll back: the selected prompts have no earlier version that "
                "production can return to."
            ),
        )
        return redirect_back(request)
    if "seen" not in request.POST:
        return render_rollback_page(request, targets, RollBackForm())
    form = RollBackForm(request.POST)
    if set(request.POST.getlist("seen")) != {target.confirmation for target in moving}:
        form.add_error(
            None, _("Production moved after you opened this page. Check the list, then roll back.")
        )
    elif form.is_valid() and (moves := try_roll_back(request, form, moving)):
        message = ngettext(
            "Rolled back %(count)d prompt. Production stays pinned until the next release.",
            "Rolled back %(count)d prompts. Production stays pinned until the next release.",
            len(moves),
        )
        messages.success(request, message % {"count": len(moves)})
        return redirect_back(request)
    return render_rollback_page(request, targets, form, status=422)


def try_roll_back(
    request: WorkspaceRequest, form: RollBackForm, moving: Sequence[RollbackTarget]
) -> Sequence[LabelMove]:
    """Roll back all prompts in one transaction; errors are added to the form."""
    prompts, expected = [target.prompt for target in moving], dict(target.version_ids for target in moving)
    try:
        # `roll_back` compares `expected` again under its lock, because another roll-back may run meanwhile.
        return roll_back(prompts, by=request.actor, note=form.cleaned_data["note"], expected=expected)
    except InvalidInput as error:
        form.add_service_errors(error)
    except DomainError as error:
        form.add_error(None, error.message)
    return []


def render_rollback_page(
    request: WorkspaceRequest, targets: Sequence[RollbackTarget], form: RollBackForm, status: int = 200
) -> HttpResponse:
    moving = [target for target in targets if target.target]
    items = [
        ReleaseItem(
            workspace=request.workspace, prompt=target.prompt, version=target.target, before=target.current
        )
        for target in moving
    ]
    context = {
        "form": form,
        "moving": moving,
        "review": build_release_review(request.workspace, group_release_changes(request.workspace, items)),
        "token_field": REVIEWED_FIELD,
        "token": create_review_token(request.user.pk, request.path, hash_release_effect(items)),
        "staying": [target for target in targets if not target.target],
        "back": get_back_url(request, reverse("home", args=[request.workspace.slug])),
    }
    return render(request, "prompts/fleet/roll_back.html", context, status=status)


BulkFunction = Callable[[WorkspaceRequest, AgentPrompts], HttpResponse]
# By action: permission, function, and the verb that the review shows.
BULK_ACTIONS: dict[str, tuple[Permission, BulkFunction, Verb]] = {
    "release": (Permission.EDIT, bulk_release, gettext_lazy("Release")),
    "rebuild": (Permission.EDIT, bulk_rebuild, gettext_lazy("Rebuild")),
    "roll-back": (Permission.APPROVE, bulk_roll_back, gettext_lazy("Roll back")),
}
