"""Form actions on a release: approve, run, reject, withdraw, override."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission, require_reauthentication
from prompts.models import Release, ReleaseStatus
from prompts.page_lookup import get_release_or_404
from prompts.releases.forms import ReasonForm
from prompts.releases.services import (
    approve_release,
    override_release,
    reject_release,
    run_release,
    withdraw_release,
)

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


@require_permission(APPROVE)
@require_POST
def approve_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_release_action(request, number, lambda release: approve_release(release, by=request.actor))


@require_permission(EDIT)
@require_POST
def run_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_release_action(request, number, lambda release: run_release(release, by=request.actor))


@require_permission(APPROVE)
@require_POST
def reject_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_action_with_reason(request, number, reject_release)


@require_permission(EDIT)
@require_POST
def withdraw_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_release_action(request, number, lambda release: withdraw_release(release, by=request.actor))


@require_permission(Permission.OVERRIDE)
@require_reauthentication
@require_POST
def override_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_action_with_reason(request, number, override_release)


def run_action_with_reason(
    request: WorkspaceRequest, number: int, action: Callable[..., Release]
) -> HttpResponse:
    """Run an action that requires a reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        get_release_or_404(request, number)
        messages.error(request, _("A reason is required."))
        return redirect("releases:detail", request.workspace.slug, number)
    reason = form.cleaned_data["reason"]
    return run_release_action(
        request, number, lambda release: action(release, reason=reason, by=request.actor)
    )


def run_release_action(
    request: WorkspaceRequest, number: int, action: Callable[[Release], Release]
) -> HttpResponse:
    release = get_release_or_404(request, number)
    try:
        release = action(release)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        if release.status == ReleaseStatus.VOIDED:
            messages.error(request, _("Not released. %(reason)s") % {"reason": release.reason})
        else:
            messages.success(request, f"{release}: {release.get_status_display().lower()}.")
    return redirect("releases:detail", request.workspace.slug, number)


urlpatterns: list[URLPattern] = [
    path("<int:number>/approve/", approve_release_view, name="approve"),
    path("<int:number>/release/", run_release_view, name="carry-out"),
    path("<int:number>/reject/", reject_release_view, name="reject"),
    path("<int:number>/withdraw/", withdraw_release_view, name="withdraw"),
    path("<int:number>/override/", override_release_view, name="override"),
]
