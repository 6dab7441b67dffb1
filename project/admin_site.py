"""Django admin site for operators: superusers only, with the product's own login page."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from core.db.workspace_scope import enter_all_workspaces

V = TypeVar("V", bound=Callable[..., Any])


class OperatorSite(AdminSite):
    site_title = site_header = "Dramatis operators"
    index_title = "Records"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def admin_view(self, view: V, cacheable: bool = False) -> V:
        """Wrap an admin view so that it sees all workspaces; the base class checks the permission first."""

        @wraps(view)
        def view_all_workspaces(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            enter_all_workspaces()
            return view(request, *args, **kwargs)

        return cast("V", super().admin_view(view_all_workspaces, cacheable))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the product's login: the admin's own form has no rate limit and no second factor."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise Http404
        return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index"))
