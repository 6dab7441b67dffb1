"""Pages to choose or create a workspace, to edit its settings, and to edit the user's own profile."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from personas.accounts.account_adapter import INVITATION_SESSION_KEY
from personas.errors import InvalidInput
from personas.members.forms import AccountForm, RenameWorkspaceForm, WorkspaceForm
from personas.models import User
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, list_memberships, require_permission
from personas.workspaces.services import create_workspace, rename_workspace

ALLOWED_METHODS = ["GET", "HEAD", "POST"]


@require_safe
def choose_workspace(request: HttpRequest) -> HttpResponse:
    """Redirect to a pending invitation, or to the user's workspace if there is only one.

    Otherwise list the workspaces of the user.
    """
    if token := request.session.get(INVITATION_SESSION_KEY):
        return redirect("invitation", token)
    memberships = list_memberships(cast("User", request.user))
    if len(memberships) == 1:
        return redirect("home", memberships[0].workspace.slug)
    return render(request, "personas/workspaces/choose.html", {"own": memberships})


@require_http_methods(ALLOWED_METHODS)
def new_workspace(request: HttpRequest) -> HttpResponse:
    form = WorkspaceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            workspace = create_workspace(**form.cleaned_data, owner=cast("User", request.user))
        except InvalidInput as error:
            for name, texts in error.errors.items():
                form.add_error(name if name in form.fields else None, texts)
        else:
            messages.success(
                request,
                _("Workspace “%(workspace)s” created. Create your first agent.")
                % {"workspace": workspace.name},
            )
            return redirect("home", workspace.slug)
    context = {"form": form}
    return render(request, "personas/workspaces/new.html", context, status=422 if form.errors else 200)


@require_permission(Permission.MANAGE_MEMBERS)
def workspace_settings(request: WorkspaceRequest) -> HttpResponse:
    form = RenameWorkspaceForm(request.POST or None, initial={"name": request.workspace.name})
    if request.method == "POST" and form.is_valid():
        try:
            rename_workspace(request.workspace, form.cleaned_data["name"], by=request.actor)
        except InvalidInput as error:
            form.add_error("name", error.errors.get("name", [error.message]))
        else:
            messages.success(request, _("Saved."))
            return redirect("workspace-settings", request.workspace.slug)
    return render(
        request, "personas/workspaces/settings.html", {"form": form}, status=422 if form.errors else 200
    )


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
