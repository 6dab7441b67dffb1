"""What operators may do with accounts: send a password reset, remove second factors."""

from allauth.account.adapter import get_adapter
from allauth.account.forms import ResetPasswordForm
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.db import transaction
from django.http import HttpRequest

from personas.accounts.models import SecurityEventKind
from personas.accounts.operator_audit import audit_account_change
from personas.accounts.services import record_security_event
from personas.actors import Actor
from personas.models import User


def send_password_reset(user: User, request: HttpRequest, *, by: Actor) -> None:
    """Send the user the email with a link to choose a new password. The operator does not see the link."""
    form = ResetPasswordForm({"email": user.email})
    form.full_clean()
    audit_account_change(user, "password reset sent", by=by)
    form.save(request)


def remove_second_factors(user: User, *, by: Actor) -> None:
    """Remove all second factors of a user who lost them, end the user's sessions, and notify the user."""
    with transaction.atomic():
        Authenticator.objects.filter(user=user).delete()
        record_security_event(user, SecurityEventKind.SECOND_FACTOR_REMOVED, by=by)
        audit_account_change(user, "second factors removed", by=by)
        for session in UserSession.objects.filter(user=user):
            session.end()
    # The email shows the operator instead of the IP address and browser of the request.
    operator = {"ip": by.label, "user_agent": "/operator/"}
    get_adapter().send_notification_mail("mfa/email/totp_deactivated", user, operator)
