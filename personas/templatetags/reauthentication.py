"""Template tag for the page that asks for the password or second factor again."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django import template
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from personas.models import Workspace
from personas.tenancy.middleware import list_memberships
from personas.ui.responses import get_back_url

register = template.Library()
WORKSPACE_PATH_PATTERN = re.compile(r"/w/([^/?]+)/")


@dataclass(frozen=True)
class ReauthenticationTarget:
    """Where the user continues after the confirmation, and where “Cancel” leads."""

    path: str
    back: str
    workspace: Workspace | None = None


@register.simple_tag(takes_context=True)
def reauthentication_target(context: dict[str, Any]) -> ReauthenticationTarget:
    """Return the path in the query parameter `next` with its workspace, and the page that the user came from.

    “Cancel” must not lead to the path itself: it would ask for the password again, or accepts POST only.
    """
    request: HttpRequest = context["request"]
    value = str(context.get("redirect_field_value") or "")
    path = value if is_local_path(value) else ""
    workspace = find_workspace(request, path)
    home = reverse("home", args=[workspace.slug]) if workspace else "/"
    back = get_back_url(request, get_referring_path(request) or home)
    is_same = urlsplit(back).path == urlsplit(path).path
    return ReauthenticationTarget(path, home if is_same else back, workspace)


def is_local_path(value: str) -> bool:
    return value.startswith("/") and url_has_allowed_host_and_scheme(value, allowed_hosts=None)


def find_workspace(request: HttpRequest, path: str) -> Workspace | None:
    """Return the workspace that a path belongs to, if the user is a member."""
    found = WORKSPACE_PATH_PATTERN.match(path)
    user: Any = request.user
    memberships = list_memberships(user) if found and user.is_authenticated else []
    return next((one.workspace for one in memberships if found and one.workspace.slug == found[1]), None)


def get_referring_path(request: HttpRequest) -> str:
    """Return the path of the page that the user came from. Browsers keep it while they follow redirects."""
    parts = urlsplit(request.headers.get("Referer", ""))
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    is_own = parts.netloc == request.get_host() and "reauthenticate" not in parts.path
    return path if is_own and is_local_path(path) else ""
