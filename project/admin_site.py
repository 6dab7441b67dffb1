"""Django admin site for operators: superusers with a second factor, which they confirmed recently."""

import time
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.reauthentication import suspend_request
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from core.db.workspace_scope import enter_all_workspaces

V = TypeVar("V", bound=Callable[..., Any])

# Apps whose admin pages are not offered: they would show the secrets of second factors, and add verified
# email addresses or end sessions without a trace.
HIDDEN_APPS = frozenset({"auth", "account", "mfa", "usersessions"})
SECOND_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


class OperatorSite(AdminSite):
    site_title = site_header = "Dramatis operators"
    index_title = "Records"

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register admin pages, except those of HIDDEN_APPS."""
        models: Iterable[type[Model]] = (
            [model_or_iterable] if isinstance(model_or_iterable, type) else model_or_iterable
        )
        shown = [model for model in models if model._meta.app_label not in HIDDEN_APPS]
        super().register(shown, admin_class, **options)

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def admin_view(self, view: V, cacheable: bool = False) -> V:
        """Wrap an admin view so that it sees all workspaces; the base class checks the permission first."""

        @wraps(view)
        def view_all_workspaces(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            enter_all_workspaces()
            return view(request, *args, **kwargs)

        permitted = super().admin_view(view_all_workspaces, cacheable)

        @wraps(permitted)
        def require_operator(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if self.has_permission(request) and (response := require_recent_second_factor(request)):
                return response
            return permitted(request, *args, **kwargs)

        return cast("V", require_operator)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the product's login: the admin's own form has no rate limit and no second factor."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise Http404
        return redirect_to_login(request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index"))

    def password_change(  # type: ignore[override]  # wider: Django accepts any response
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the product's own page, which records the change and ends other sessions."""
        return redirect("account_change_password")


def require_recent_second_factor(request: HttpRequest) -> HttpResponse | None:
    """Redirect an operator who has no second factor, or has not confirmed it recently.

    The first goes to the setup. The second goes to the confirmation, which then continues with this request.
    """
    if not is_mfa_enabled(request.user, types=SECOND_FACTORS):
        messages.warning(
            request,
            _("Operators need a second factor. Set up an authenticator app or a passkey to continue."),
        )
        return redirect("mfa_index")
    if has_recent_second_factor(request):
        return None
    methods = get_adapter().get_reauthentication_methods(request.user)
    url = next(method["url"] for method in methods if method["id"].startswith("mfa_"))
    response: HttpResponse = suspend_request(request, url)
    return response


def has_recent_second_factor(request: HttpRequest) -> bool:
    """Return whether the session proved a second factor in the last DRAMATIS_OPERATOR_MINUTES minutes."""
    oldest = time.time() - settings.DRAMATIS_OPERATOR_MINUTES * 60
    records = get_authentication_records(request, request.user)
    return any(record["method"] == "mfa" and record["at"] > oldest for record in records)
