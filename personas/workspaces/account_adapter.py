"""django-allauth adapter: decides who may sign up."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from core.db.workspace_scope import all_workspaces

INVITATION_SESSION_KEY = "invitation_token"
INVITATION_ID_SESSION_KEY = "invitation_id"
# Where allauth keeps an address that counts as verified.
VERIFIED_EMAIL_SESSION_KEY = "account_verified_email"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Allows sign-up if the setting DRAMATIS_SIGNUP is on, or if the visitor opened an invitation link."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.DRAMATIS_SIGNUP) or has_open_invitation(request)

    def populate_username(self, request: HttpRequest, user: Any) -> None:
        """Do nothing: users have no user name."""


def has_open_invitation(request: HttpRequest) -> bool:
    """Return whether the visitor opened an invitation that was not used or withdrawn since, nor has expired.

    Otherwise, what the invitation left in the session is removed.
    """
    if INVITATION_SESSION_KEY not in request.session:
        return False
    # Imported here, because allauth imports this module before the models are loaded.
    from personas.models import Invitation

    with all_workspaces():
        rows = Invitation.unscoped.filter(pk=request.session.get(INVITATION_ID_SESSION_KEY, 0))
        rows = rows.filter(accepted_at=None, withdrawn_at=None, expires_at__gt=timezone.now())
        if rows.exists():
            return True
    for name in (INVITATION_SESSION_KEY, INVITATION_ID_SESSION_KEY, VERIFIED_EMAIL_SESSION_KEY):
        request.session.pop(name, None)
    return False
