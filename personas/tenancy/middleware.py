"""Access control for workspaces: determine the workspace of a request and the user's role there.

Users outside the workspace get 404.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from allauth.account.decorators import reauthentication_required
from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from core.db import workspace_scope
from core.text.lists import format_list
from personas.actors import Actor
from personas.models import Membership, User, Workspace
from personas.roles import ROLES_BY_PERMISSION, Permission, Role, has_permission
from personas.ui.display_names import set_people_workspace
from personas.ui.review import ReviewDeclaration

READ_METHODS = ("GET", "HEAD")
WRITE_METHODS = (*READ_METHODS, "POST")


class WorkspaceRequest(HttpRequest):
    """Type of a request to a page of a workspace, with the attributes that the access check sets."""

    user: User
    workspace: Workspace
    membership: Membership
    memberships: list[Membership]
    actor: Actor
    denied_permission: Permission | None = None
    # The path of a request that was stored while the user confirmed the sign-in.
    resumed_path: str = ""


class ViewFunction(Protocol):
    """Type of a view function. `require_permission` sets the attributes `needs` and `review`."""

    def __call__(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase: ...


V = TypeVar("V", bound=Callable[..., HttpResponseBase])


def require_permission(permission: Permission, review: ReviewDeclaration) -> Callable[[V], V]:
    """Decorate a workspace view: only roles with this permission may use it, by GET or POST.

    `review` declares whether the member reviews what a POST does to prompts.
    """

    def mark(view: V) -> V:
        view.needs = permission  # type: ignore[attr-defined]  # read by the middleware below
        view.review = review  # type: ignore[attr-defined]  # read by the review step
        return view

    return mark


def require_reauthentication(view: V, is_needed: Callable[[HttpRequest], bool] = lambda _: True) -> V:
    """Decorate a view to require recent authentication, if `is_needed` returns True for the request.

    If the last sign-in is too long ago, django-allauth asks for the password or second factor again. It then
    calls the view without the middleware, so access check and review step are repeated here.
    """
    reauthenticated = reauthentication_required(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = check_workspace_access(request, guarded, kwargs)
        if response is not None:
            return response

        if is_resumed(request):
            # The browser still shows the URL of the confirmation page. A script replaces it with this path.
            cast("WorkspaceRequest", request).resumed_path = request.get_full_path()

        def call() -> HttpResponseBase:
            checked = reauthenticated if is_needed(request) else view
            return cast("HttpResponseBase", checked(request, *args, **kwargs))

        run_review_step = import_string(settings.REVIEW_STEP)
        return cast("HttpResponseBase", run_review_step(request, guarded, call))

    guarded.runs_review_step = True  # type: ignore[attr-defined]  # read by the middleware of the review

    return cast("V", guarded)


def is_review_lift(request: HttpRequest) -> bool:
    """Whether a form may lift a review. That requires a reason, and without one the form is rejected."""
    return request.method == "POST" and bool(request.POST.get("reason", "").strip())


def is_resumed(request: HttpRequest) -> bool:
    """Whether django-allauth calls the view with a stored request, after the user confirmed the sign-in."""
    match = request.resolver_match
    return match is not None and "reauthenticate" in (match.url_name or "")


def is_recently_authenticated(request: HttpRequest) -> bool:
    """Whether a view with `require_reauthentication` would run without asking for the password again."""
    try:
        reauthentication_required(lambda _request: None)(request)
    except ReauthenticationRequired:
        return False
    return True


class TenancyMiddleware:
    """Check access to pages with the URL argument `workspace`, and keep pages out of caches.

    Users outside the workspace get 404.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # A page translates hundreds of texts. Without an active language, each takes 50% longer, because an
        # exception is raised and caught before the default language is used.
        translation.activate(translation.get_language() or settings.LANGUAGE_CODE)
        try:
            response = self.get_response(request)
            if settings.SESSION_COOKIE_NAME in request.COOKIES and "Cache-Control" not in response:
                # The page may contain text of a workspace: neither a proxy nor the browser may keep it.
                response["Cache-Control"] = "private, no-store"
            return response
        finally:
            # Reset the timezone of this thread, because its next request may be from another user.
            timezone.deactivate()
            set_people_workspace(None)

    def process_view(
        self, request: HttpRequest, view: ViewFunction, args: Any, kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        return check_workspace_access(request, view, kwargs)


def check_workspace_access(
    request: HttpRequest, view: ViewFunction, kwargs: dict[str, Any]
) -> HttpResponseBase | None:
    """Check whether the user may access the workspace in the URL with this view.

    Return None to continue with the view, or a response to send instead: 405, or a redirect. Raise Http404 or
    PermissionDenied without access.
    """
    if "workspace" not in kwargs:
        return None
    slug = kwargs.pop("workspace")
    workspace_request = resolve_workspace(request, slug)
    if workspace_request.workspace.slug != slug and request.method in READ_METHODS:
        return redirect(replace_slug(request.get_full_path(), slug, workspace_request.workspace.slug))
    # Checked first, because the responses of the other checks are pages of the workspace too.
    if (response := require_second_factor(workspace_request)) is not None:
        return response
    permission = getattr(view, "needs", None)
    # Deny by default: a view without `require_permission` accepts only GET and HEAD.
    allowed_methods = READ_METHODS if permission is None else WRITE_METHODS
    if request.method not in allowed_methods:
        return HttpResponseNotAllowed(allowed_methods)
    required = permission or Permission.READ
    if not has_permission(workspace_request.membership.role, required):
        # The 403 page uses this to list the members who have the permission.
        workspace_request.denied_permission = required
        raise PermissionDenied(describe_required_roles(required))
    return None


def resolve_workspace(request: HttpRequest, slug: str) -> WorkspaceRequest:
    """Set workspace, membership and actor on the request. Raise Http404 if the user is not a member.

    A slug that the workspace had before is accepted too: a form that was open while the slug changed can
    still be sent.
    """
    workspace_request = cast("WorkspaceRequest", request)
    workspace_request.memberships = list_memberships(workspace_request.user)
    membership = find_membership(workspace_request.memberships, slug)
    if membership is None:
        raise Http404("Workspace not found.")
    workspace_request.membership, workspace_request.workspace = membership, membership.workspace
    workspace_scope.enter_workspace(workspace_request.workspace.pk)
    set_people_workspace(workspace_request.workspace.pk)
    workspace_request.actor = Actor.person(workspace_request.user)
    timezone.activate(workspace_request.user.timezone)
    return workspace_request


def find_membership(memberships: list[Membership], slug: str) -> Membership | None:
    """Return the membership in the workspace that has the slug; otherwise, that had it before."""
    current = (row for row in memberships if row.workspace.slug == slug)
    former = (row for row in memberships if slug in row.workspace.former_slugs)
    return next(current, None) or next(former, None)


def replace_slug(path: str, before: str, slug: str) -> str:
    """Return the path of a page with another slug of the workspace."""
    return path.replace(f"/w/{before}/", f"/w/{slug}/", 1)


def list_memberships(user: User) -> list[Membership]:
    """Return the memberships of a user in all workspaces that are not deleted, sorted by workspace name."""
    with workspace_scope.all_workspaces():
        rows = Membership.unscoped.filter(user=user, workspace__deleted_at=None)
        return list(rows.select_related("workspace").order_by("workspace__name", "pk"))


def describe_required_roles(permission: Permission) -> str:
    """Return the message of a 403 response, which lists the roles that have the permission."""
    roles = [role.label.lower() for role in Role if role in ROLES_BY_PERMISSION[permission]]
    return _("Your role does not allow this. Allowed roles: %(roles)s.") % {"roles": format_list(roles)}


def require_second_factor(request: WorkspaceRequest) -> HttpResponse | None:
    """Redirect a member without a second factor to the page where it is set up. Otherwise return None.

    The workspace can require a second factor of all members, the setting DRAMATIS_REQUIRE_OWNER_MFA of
    owners. The pages of the account, where the factor is set up, do not belong to a workspace.
    """
    is_owner = request.membership.role == Role.OWNER
    if request.workspace.requires_second_factor:
        text = _(
            "This workspace requires a second factor. Set up an authenticator app, a "
            "passkey or a security key to continue."
        )
    elif is_owner and settings.DRAMATIS_REQUIRE_OWNER_MFA:
        text = _(
            "Owners need a second factor. Set up an authenticator app, a passkey or a "
            "security key to continue."
        )
    else:
        return None
    if is_mfa_enabled(request.user):
        return None
    if request.headers.get("HX-Request") == "true":
        # With an ordinary redirect, htmx would insert the target page into the open page.
        return HttpResponse(status=204, headers={"HX-Redirect": reverse("mfa_index")})
    messages.warning(request, text)
    return redirect("mfa_index")
