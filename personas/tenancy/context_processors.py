"""Context processor for every page: workspace, permissions, navigation."""

from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from personas.roles import Permission, has_permission
from personas.tenancy.middleware import WorkspaceRequest, list_memberships
from personas.ui.command_palette import list_commands, list_workspace_entries
from personas.ui.navigation import build_navigation, list_page_entries


def page_context(request: HttpRequest) -> dict[str, Any]:
    """Return the template context for the page frame (workspace switcher, navigation, command palette).

    Its values are computed on first use, because error pages and HTML fragments have no frame.
    """
    workspace = getattr(request, "workspace", None)
    if workspace is None:
        return {
            "workspace": None,
            "role": "",
            "can": SimpleNamespace(),
            "memberships": SimpleLazyObject(lambda: list_workspace_choices(request)),
            "nav": [],
            "palette": [],
        }
    workspace_request = cast("WorkspaceRequest", request)
    role = workspace_request.membership.role
    can = SimpleNamespace(**{permission.value: has_permission(role, permission) for permission in Permission})
    choices = cache(lambda: list_workspace_choices(request))
    return {
        "workspace": workspace,
        "role": workspace_request.membership.get_role_display(),
        "can": can,
        "unread_count": workspace_request.membership.unread_count,
        "memberships": choices,
        "nav": cache(lambda: build_navigation(workspace, request.path, can)),
        "palette": cache(
            lambda: (
                list_page_entries(workspace, can)
                + list_commands(workspace, can)
                + list_workspace_entries(choices())
            )
        ),
    }


def list_workspace_choices(request: HttpRequest) -> list[SimpleNamespace]:
    """Return the entries of the workspace switcher."""
    user, current = getattr(request, "user", None), getattr(request, "workspace", None)
    if user is None or not user.is_authenticated:
        return []
    memberships = getattr(request, "memberships", None)
    return [
        SimpleNamespace(
            workspace=membership.workspace,
            url=reverse("home", args=[membership.workspace.slug]),
            is_current=membership.workspace == current,
            role_label=membership.get_role_display(),
        )
        for membership in (list_memberships(user) if memberships is None else memberships)
    ]
