"""What people decide about a release; each is a button, and the service has the last word."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, needs
from prompts.models import Release, ReleaseStatus
from prompts.page_lookup import found_release
from prompts.releases.forms import ReasonForm
from prompts.releases.services import (
    approve_release,
    carry_out_release,
    override_release,
    reject_release,
    withdraw_release,
)

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


@needs(APPROVE)
@require_POST
def approve(request: WorkspaceRequest, number: int) -> HttpResponse:
    return decided(request, number, lambda release: approve_release(release, by=request.actor))


@needs(EDIT)
@require_POST
def carry_out(request: WorkspaceRequest, number: int) -> HttpResponse:
    return decided(request, number, lambda release: carry_out_release(release, by=request.actor))


@needs(APPROVE)
@require_POST
def reject(request: WorkspaceRequest, number: int) -> HttpResponse:
    return reasoned(request, number, reject_release)


@needs(EDIT)
@require_POST
def withdraw(request: WorkspaceRequest, number: int) -> HttpResponse:
    return decided(request, number, lambda release: withdraw_release(release, by=request.actor))


@needs(Permission.MANAGE_KEYS)
@require_POST
def override(request: WorkspaceRequest, number: int) -> HttpResponse:
    return reasoned(request, number, override_release)


def reasoned(request: WorkspaceRequest, number: int, verb: Callable[..., Release]) -> HttpResponse:
    """A decision that must say why."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        found_release(request, number)
        messages.error(request, _("Say why: those who look later will want to know."))
        return redirect("releases:detail", request.workspace.slug, number)
    reason = form.cleaned_data["reason"]
    return decided(request, number, lambda release: verb(release, reason=reason, by=request.actor))


def decided(request: WorkspaceRequest, number: int, verb: Callable[[Release], Release]) -> HttpResponse:
    release = found_release(request, number)
    try:
        release = verb(release)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        if release.status == ReleaseStatus.VOIDED:
            messages.error(request, _("Nothing was moved. %(reason)s") % {"reason": release.reason})
        else:
            messages.success(request, f"{release}: {release.get_status_display().lower()}.")
    return redirect("releases:detail", request.workspace.slug, number)


urlpatterns: list[URLPattern] = [
    path("<int:number>/approve/", approve, name="approve"),
    path("<int:number>/release/", carry_out, name="carry-out"),
    path("<int:number>/reject/", reject, name="reject"),
    path("<int:number>/withdraw/", withdraw, name="withdraw"),
    path("<int:number>/override/", override, name="override"),
]
