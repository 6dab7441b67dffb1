"""Pages to choose or create a workspace, to edit its settings, and to edit the user's own profile."""

from functools import partial
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from personas.accounts.account_adapter import INVITATION_SESSION_KEY
from personas.api_keys.selectors import filter_active_keys, list_keys
from personas.errors import DomainError, InvalidInput
from personas.limits.persons import WorkspaceLimitReached
from personas.members.forms import (
    AccountForm,
    DeleteWorkspaceForm,
    WorkspaceForm,
    WorkspaceSettingsForm,
    WorkspaceSlugForm,
)
from personas.models import Agent, Membership, User
from personas.roles import Permission
from personas.tenancy.middleware import (
    WorkspaceRequest,
    is_review_lift,
    list_memberships,
    require_permission,
    require_reauthentication,
)
from personas.ui.review import NotReviewed
from personas.workspaces.deletion import (
    RESTORE_DAYS,
    delete_workspace,
    get_restore_deadline,
    list_restorable_workspaces,
    restore_own_workspace,
)
from personas.workspaces.services import (
    change_workspace_slug,
    count_second_factors,
    create_workspace,
    edit_workspace,
    take_over_workspace,
)

ALLOWED_METHODS = ["GET", "HEAD", "POST"]


@require_safe
def choose_workspace(request: HttpRequest) -> HttpResponse:
    """Redirect to a pending invitation, or to the user's workspace if there is only one.

    Otherwise list the workspaces of the user, and the deleted ones that the user can restore.
    """
    if token := request.session.get(INVITATION_SESSION_KEY):
        return redirect("invitation", token)
    user = cast("User", request.user)
    memberships, deleted = list_memberships(user), list_restorable_workspaces(user)
    if len(memberships) == 1 and not deleted:
        return redirect("home", memberships[0].workspace.slug)
    context = {"own": memberships, "deleted": [(row, get_restore_deadline(row)) for row in deleted]}
    return render(request, "personas/workspaces/choose.html", context)


@require_POST
def restore_workspace_view(request: HttpRequest, workspace_id: int) -> HttpResponse:
    """Restore a deleted workspace. Only its owners can, for some days; others get 404."""
    user = cast("User", request.user)
    found = [row for row in list_restorable_workspaces(user) if row.pk == workspace_id]
    if not found:
        raise Http404("Workspace not found.")
    workspace = restore_own_workspace(found[0], user)
    messages.success(
        request,
        _("Workspace “%(workspace)s” restored. Its API keys stay revoked: create new ones.")
        % {"workspace": workspace.name},
    )
    return redirect("home", workspace.slug)


@require_http_methods(ALLOWED_METHODS)
def new_workspace(request: HttpRequest) -> HttpResponse:
    form = WorkspaceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            workspace = create_workspace(**form.cleaned_data, owner=cast("User", request.user))
        except InvalidInput as error:
            for name, texts in error.errors.items():
                form.add_error(name if name in form.fields else None, texts)
        except WorkspaceLimitReached as error:
            form.add_error(None, error.message)
            return render(request, "personas/workspaces/new.html", {"form": form}, status=429)
        else:
            messages.success(
                request,
                _("Workspace “%(workspace)s” created. Create your first agent.")
                % {"workspace": workspace.name},
            )
            return redirect("home", workspace.slug)
    context = {"form": form}
    return render(request, "personas/workspaces/new.html", context, status=422 if form.errors else 200)


@require_permission(Permission.MANAGE_MEMBERS, NotReviewed("policies of members and new agents"))
@partial(require_reauthentication, is_needed=is_review_lift)
def workspace_settings(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.workspace
    form = WorkspaceSettingsForm(request.POST or None, workspace=workspace)
    if request.method == "POST" and form.is_valid():
        try:
            edit_workspace(workspace, form.cleaned_data, by=request.actor)
        except InvalidInput as error:
            for name, texts in error.errors.items():
                form.add_error(name if name in form.fields else None, texts)
        else:
            messages.success(request, _("Saved."))
            return redirect("workspace-settings", workspace.slug)
    return render_settings(request, form, WorkspaceSlugForm(initial={"slug": workspace.slug}))


@require_permission(Permission.MANAGE_MEMBERS, NotReviewed("slug of the workspace"))
@require_POST
def change_slug(request: WorkspaceRequest) -> HttpResponse:
    """Change the slug of the workspace. The form is on the page of its settings."""
    form = WorkspaceSlugForm(request.POST)
    workspace = request.workspace
    if form.is_valid():
        try:
            changed = change_workspace_slug(workspace, form.cleaned_data["slug"], by=request.actor)
        except InvalidInput as error:
            form.add_error("slug", error.errors.get("slug", [error.message]))
        else:
            messages.success(request, _("Slug changed to “%(slug)s”.") % {"slug": changed.slug})
            return redirect("workspace-settings", changed.slug)
    return render_settings(request, WorkspaceSettingsForm(workspace=workspace), form)


@require_permission(Permission.MANAGE_MEMBERS, NotReviewed("owner of the workspace"))
@require_reauthentication
@require_POST
def take_over(request: WorkspaceRequest) -> HttpResponse:
    """Let the workspace count towards the limits of the signed-in owner."""
    try:
        take_over_workspace(request.workspace, by=request.actor)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("This workspace now counts towards your limits."))
    return redirect("workspace-settings", request.workspace.slug)


def render_settings(
    request: WorkspaceRequest, form: WorkspaceSettingsForm, slug_form: WorkspaceSlugForm
) -> HttpResponse:
    """Render the page of the settings. A form with errors keeps what was typed."""
    factor_count, member_count = count_second_factors(request.workspace)
    context = {
        "form": form,
        "slug_form": slug_form,
        "factor_count": factor_count,
        "member_count": member_count,
        "event_months": settings.DRAMATIS_KEEP_EVENTS_MONTHS,
    }
    status = 422 if form.errors or slug_form.errors else 200
    return render(request, "personas/workspaces/settings.html", context, status=status)


@require_permission(Permission.MANAGE_MEMBERS, NotReviewed("no prompt is served after it"))
@require_reauthentication
def delete_workspace_view(request: WorkspaceRequest) -> HttpResponse:
    """Delete the workspace after the owner has typed its name."""
    workspace = request.workspace
    form = DeleteWorkspaceForm(request.POST or None, workspace_name=workspace.name)
    if request.method == "POST" and form.is_valid():
        delete_workspace(workspace, by=request.actor)
        messages.success(
            request,
            _("Workspace “%(workspace)s” deleted. You can restore it for %(days)s days.")
            % {"workspace": workspace.name, "days": RESTORE_DAYS},
        )
        return redirect("start")
    context = {
        "form": form,
        "restore_days": RESTORE_DAYS,
        "agent_count": Agent.objects.in_workspace(workspace).filter(archived_at=None).count(),
        "member_count": Membership.objects.in_workspace(workspace).count(),
        "key_count": filter_active_keys(list_keys(workspace)).count(),
    }
    return render(request, "personas/workspaces/delete.html", context, status=422 if form.errors else 200)


@require_http_methods(ALLOWED_METHODS)
def edit_profile(request: HttpRequest) -> HttpResponse:
    """Edit the display name and timezone of the signed-in user."""
    user = cast("User", request.user)
    form = AccountForm(request.POST or None, initial={"name": user.name, "timezone": user.timezone})
    if request.method == "POST" and form.is_valid():
        user.name, user.timezone = form.cleaned_data["name"], form.cleaned_data["timezone"]
        user.save(update_fields=["name", "timezone"])
        messages.success(request, _("Saved."))
        return redirect("profile")
    return render(
        request, "personas/workspaces/profile.html", {"form": form}, status=422 if form.errors else 200
    )
