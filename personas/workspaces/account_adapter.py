"""How accounts behave: who may sign up, and where a log-in leads."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest

INVITATION_SESSION_KEY = "invitation_token"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Sign-up is a switch; an open invitation passes even when it is off."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.DRAMATIS_SIGNUP) or INVITATION_SESSION_KEY in request.session

    def populate_username(self, request: HttpRequest, user: Any) -> None:
        """People have no user name here."""
