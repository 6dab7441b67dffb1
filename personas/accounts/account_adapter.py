"""django-allauth adapters: who may sign up, limits of failed sign-ins and of emails, known devices."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.utils import filter_users_by_email
from allauth.core import context
from allauth.core.internal import ratelimit
from allauth.usersessions.adapter import DefaultUserSessionsAdapter
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _

from core.db.workspace_scope import all_workspaces
from personas.accounts.known_devices import find_device_id, remember_device
from personas.accounts.models import SecurityEventKind
from personas.accounts.services import end_user_session, record_security_event
from personas.accounts.sign_in_delays import (
    clear_sign_in_failures,
    count_sign_in_failure,
    get_remaining_delay,
)
from personas.limits.emails import EmailKind, build_public_url, can_send_email
from personas.models import Invitation, User

INVITATION_SESSION_KEY = "invitation_token"
INVITATION_ID_SESSION_KEY = "invitation_id"
# Session key under which allauth keeps an email address that counts as verified.
VERIFIED_EMAIL_SESSION_KEY = "account_verified_email"
# The name that allauth's rate limits use for failed sign-ins.
LOGIN_FAILED = "login_failed"
# Templates of emails that a visitor can cause to be sent, even to other people's addresses.
VISITOR_TEMPLATES = frozenset(
    f"account/email/{name}"
    for name in (
        "account_already_exists",
        "email_confirmation",
        "email_confirmation_signup",
        "password_reset_key",
        "unknown_account",
    )
)


def find_account(login: str) -> User | None:
    """Return the account of an email address that was entered as the login."""
    users = filter_users_by_email(login, prefer_verified=True) if login else []
    return users[0] if users else None


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    """Allows sign-up if the setting DRAMATIS_SIGNUP is on, or if the visitor opened an invitation link.

    Failed sign-ins are limited per account and address, and per address; a growing delay applies to all other
    addresses too. A known device has a counter of its own, which nobody else can fill.
    """

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.DRAMATIS_SIGNUP) or has_open_invitation(request)

    def populate_username(self, request: HttpRequest, user: Any) -> None:
        """Do nothing: users have no user name."""

    # --- emails ----------------------------------------------------------------------------------------

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send an account email whose links have the host of PUBLIC_URL; none beyond the limit of the day."""
        if not can_send_email(self.get_email_kind(template_prefix, email), email):
            return
        links = {name: build_public_url(url) for name, url in context.items() if name.endswith("_url")}
        site = SimpleNamespace(name="Dramatis", domain=urlsplit(settings.PUBLIC_URL).netloc)
        public = {"current_site": site, "public_url": settings.PUBLIC_URL}
        super().send_mail(template_prefix, email, context | links | public)

    def get_email_kind(self, template_prefix: str, email: str) -> EmailKind:
        """Return who causes an email. What others cause never uses up what the user of the account needs."""
        request = context.request
        if template_prefix not in VISITOR_TEMPLATES:
            return EmailKind.ACCOUNT
        if request.user.is_authenticated:
            is_own = request.user.email.lower() == email.lower()
            return EmailKind.ACCOUNT if is_own or request.user.is_staff else EmailKind.VISITOR
        return EmailKind.ACCOUNT if find_device_id(request, find_account(email)) else EmailKind.VISITOR

    # --- limits of failed sign-ins ---------------------------------------------------------------------

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Raise ValidationError if there were too many failures, before the password is checked.

        A failure is counted in advance; allauth takes it back if the password is right.
        """
        login = get_login(credentials)
        user = find_account(login)
        device = find_trusted_client(request, user)
        if not device and (seconds := get_remaining_delay(login, ratelimit.get_ip(request))):
            record_security_event(user, SecurityEventKind.SIGN_IN_DELAYED, request=request)
            raise ValidationError(
                _(
                    "Too many failed sign-in attempts for this account. Try again in %(seconds)s "
                    "seconds, or reset your password."
                )
                % {"seconds": seconds},
                code="too_many_login_attempts",
            )
        limits = settings.KNOWN_DEVICE_LOGIN_LIMIT if device else settings.NEW_DEVICE_LOGIN_LIMITS
        self._login_failed_rl_usage = ratelimit.consume(
            request,
            app="allauth.account",
            action=LOGIN_FAILED,
            config={LOGIN_FAILED: limits},
            key=build_counter_key(login, device or ratelimit.get_ip(request)),
        )
        if not self._login_failed_rl_usage:
            record_security_event(user, SecurityEventKind.SIGN_IN_DELAYED, request=request)
            raise self.validation_error("too_many_login_attempts")

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        login = get_login(credentials)
        user = find_account(login)
        if not find_trusted_client(request, user):
            count_sign_in_failure(login, ratelimit.get_ip(request))
        record_security_event(user, SecurityEventKind.SIGN_IN_FAILED, request=request)

    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        """Clear the counters after a password reset (called by allauth)."""
        login = get_login(credentials)
        address = ratelimit.get_ip(request)
        clear_sign_in_failures(login, address)
        for client in filter(None, [address, find_device_id(request, find_account(login))]):
            ratelimit.clear(
                request,
                app="allauth.account",
                action=LOGIN_FAILED,
                config={LOGIN_FAILED: settings.KNOWN_DEVICE_LOGIN_LIMIT},
                key=build_counter_key(login, client),
            )

    # --- after sign-in ---------------------------------------------------------------------------------

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().post_login(request, user, **kwargs)
        remember_device(request, response, user)
        return response

    def send_password_reset_mail(self, user: Any, email: str, context: dict[str, Any]) -> None:
        # If an operator sends the email, the admin site records that instead.
        if not self.request.user.is_authenticated or self.request.user.pk == user.pk:
            record_security_event(user, SecurityEventKind.PASSWORD_RESET_REQUESTED, request=self.request)
        super().send_password_reset_mail(user, email, context)


class SessionsAdapter(DefaultUserSessionsAdapter):  # type: ignore[misc]  # allauth ships no types
    """Records a security event for each session that the user ends."""

    def end_sessions(self, sessions: Iterable[UserSession]) -> None:
        for session in sessions:
            end_user_session(session, context.request)


def has_open_invitation(request: HttpRequest) -> bool:
    """Return whether the visitor opened an invitation that was not used or withdrawn since, nor has expired.

    Otherwise, what the invitation left in the session is removed.
    """
    if INVITATION_SESSION_KEY not in request.session:
        return False
    with all_workspaces():
        rows = Invitation.unscoped.filter(pk=request.session.get(INVITATION_ID_SESSION_KEY, 0))
        rows = rows.filter(accepted_at=None, withdrawn_at=None, expires_at__gt=timezone.now())
        if rows.exists():
            return True
    for name in (INVITATION_SESSION_KEY, INVITATION_ID_SESSION_KEY, VERIFIED_EMAIL_SESSION_KEY):
        request.session.pop(name, None)
    return False


def get_login(credentials: dict[str, Any]) -> str:
    return str(credentials.get("email") or credentials.get("username") or "").strip().lower()


def build_counter_key(login: str, client: str) -> str:
    return f"{login} from {client}"


def find_trusted_client(request: HttpRequest, user: User | None) -> str:
    """Return the id of the client if failures of others must not delay it, or an empty string.

    That is a known device of the user, or a session of the user that confirms the password again.
    """
    if user is not None and request.user.is_authenticated and request.user.pk == user.pk:
        return f"session of {user.pk}"
    return find_device_id(request, user)
