"""django-allauth adapter: decides who may sign up."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest

INVITATION_SESSION_KEY = "invitation_token"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Allows sign-up if the setting DRAMATIS_SIGNUP is on, or if the visitor opened an invitation link."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.DRAMATIS_SIGNUP) or INVITATION_SESSION_KEY in request.session

    def populate_username(self, request: HttpRequest, user: Any) -> None:
        """Do nothing: users have no user name."""
