"""Form actions on a release: approve, run, reject, withdraw, override, comment, ask for a review."""

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission, require_reauthentication
from personas.ui.review import NotReviewed, Reviewed
from prompts.errors import OwnChange
from prompts.models import Release, ReleaseStatus
from prompts.page_lookup import get_release_or_404
from prompts.publishing.comments.forms import CommentForm
from prompts.publishing.releases.comments import comment_on_release, request_changes
from prompts.publishing.releases.forms import ReasonForm, ReviewersForm
from prompts.publishing.releases.selectors import list_possible_reviewers
from prompts.publishing.releases.services import (
    approve_release,
    override_release,
    reject_release,
    request_again,
    request_review,
    run_release,
    withdraw_release,
)

NOT_REVIEWED = NotReviewed("only publishing a release changes prompts")

EDIT, APPROVE = Permission.EDIT, Permission.APPROVE


@require_permission(APPROVE, NOT_REVIEWED)
@require_POST
def approve_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    seen = request.POST.get("seen", "")
    try:
        return run_release_action(
            request, number, lambda release: approve_release(release, by=request.actor, seen=seen)
        )
    except OwnChange as error:
        raise PermissionDenied(error.message) from error


@require_permission(EDIT, Reviewed(gettext_lazy("Release")))
@require_POST
def run_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_release_action(request, number, lambda release: run_release(release, by=request.actor))


@require_permission(APPROVE, NOT_REVIEWED)
@require_POST
def reject_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_action_with_reason(request, number, reject_release)


@require_permission(EDIT, NOT_REVIEWED)
@require_POST
def withdraw_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_release_action(request, number, lambda release: withdraw_release(release, by=request.actor))


@require_permission(Permission.OVERRIDE, Reviewed(gettext_lazy("Release")))
@require_reauthentication
@require_POST
def override_release_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    return run_action_with_reason(request, number, override_release)


@require_permission(Permission.READ, NOT_REVIEWED)
@require_POST
def comment_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Add a comment. Every member may comment."""
    form = CommentForm(request.POST)
    release = get_release_or_404(request, number)
    try:
        if form.is_valid():
            comment_on_release(release, text=form.cleaned_data["text"], by=request.actor)
        else:
            messages.error(request, _("Enter a comment of at most 4,000 characters."))
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("releases:detail", request.workspace.slug, number)


@require_permission(APPROVE, NOT_REVIEWED)
@require_POST
def request_changes_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    form = CommentForm(request.POST)
    release = get_release_or_404(request, number)
    try:
        if form.is_valid():
            request_changes(release, reason=form.cleaned_data["text"], by=request.actor)
            messages.success(request, _("Changes requested."))
        else:
            messages.error(request, _("Describe the changes you want, in 4,000 characters or fewer."))
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("releases:detail", request.workspace.slug, number)


@require_permission(EDIT, NOT_REVIEWED)
@require_POST
def request_review_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    release = get_release_or_404(request, number)
    members = list_possible_reviewers(request.workspace, release.requested_by)
    form = ReviewersForm(request.POST, members=members)
    try:
        if form.is_valid():
            request_review(release, form.list_selected_members(), by=request.actor)
            messages.success(request, _("Review requested."))
        else:
            messages.error(request, _("Select at least one member."))
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("releases:detail", request.workspace.slug, number)


@require_permission(EDIT, NOT_REVIEWED)
@require_POST
def request_again_view(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Request the release again with the latest versions of its prompts."""
    release = get_release_or_404(request, number)
    try:
        request_again(release, by=request.actor)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("Release requested again with the latest versions."))
    return redirect("releases:detail", request.workspace.slug, number)


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
    except OwnChange:
        raise
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
    path("<int:number>/publish/", run_release_view, name="publish"),
    path("<int:number>/reject/", reject_release_view, name="reject"),
    path("<int:number>/withdraw/", withdraw_release_view, name="withdraw"),
    path("<int:number>/comment/", comment_view, name="comment"),
    path("<int:number>/request-changes/", request_changes_view, name="request-changes"),
    path("<int:number>/request-review/", request_review_view, name="request-review"),
    path("<int:number>/request-again/", request_again_view, name="request-again"),
    path("<int:number>/override/", override_release_view, name="override"),
]
