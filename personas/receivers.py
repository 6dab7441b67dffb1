"""Receivers of the signals of Django and django-allauth: they record security events."""

from typing import Any

import structlog
from allauth.account import signals as account_signals
from allauth.mfa import signals as mfa_signals
from allauth.mfa.models import Authenticator
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db import InterfaceError, OperationalError, transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from personas.accounts.known_devices import find_device_id
from personas.accounts.models import NEW_DEVICE, SecurityEventKind
from personas.accounts.services import end_other_sessions, record_security_event
from personas.models import User

log = structlog.get_logger(__name__)

# allauth signals whose receivers do nothing but record an event.
PLAIN_EVENTS = {
    account_signals.user_signed_up: SecurityEventKind.SIGNED_UP,
    account_signals.password_changed: SecurityEventKind.PASSWORD_CHANGED,
    account_signals.password_set: SecurityEventKind.PASSWORD_CHANGED,
    account_signals.password_reset: SecurityEventKind.PASSWORD_RESET,
    account_signals.email_added: SecurityEventKind.EMAIL_ADDED,
    account_signals.email_removed: SecurityEventKind.EMAIL_REMOVED,
    account_signals.email_changed: SecurityEventKind.EMAIL_CHANGED,
}


def connect_plain_events() -> None:
    for signal, kind in PLAIN_EVENTS.items():
        signal.connect(build_event_receiver(kind), weak=False, dispatch_uid=f"security event {kind}")


def build_event_receiver(kind: SecurityEventKind) -> Any:
    def record(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
        record_security_event(user, kind, request=request)

    return record


connect_plain_events()


@receiver(account_signals.user_logged_in)
def record_sign_in(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    is_known = bool(find_device_id(request, user))
    record_security_event(
        user, SecurityEventKind.SIGNED_IN, request=request, detail="" if is_known else NEW_DEVICE
    )


# `personas` is loaded before `django.contrib.auth`, so Django's receiver with this uid is not connected.
@receiver(user_logged_in, dispatch_uid="update_last_login")
def save_last_login(sender: Any, user: User, **kwargs: Any) -> None:
    """Save the time of the sign-in, in place of Django's own receiver.

    If the tables are distributed, users are on every node, and cannot be written while one is lost. That
    must not prevent anybody from signing in.
    """
    user.last_login = timezone.now()
    try:
        with transaction.atomic():
            user.save(update_fields=["last_login"])
    except (OperationalError, InterfaceError) as error:
        log.warning("last_login_not_saved", error=type(error).__name__)


@receiver(user_logged_out)
def record_sign_out(sender: Any, request: HttpRequest, user: User | None, **kwargs: Any) -> None:
    if user is not None:
        record_security_event(user, SecurityEventKind.SIGNED_OUT, request=request)


@receiver(mfa_signals.authenticator_added)
def record_added_factor(
    sender: Any, request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any
) -> None:
    record_security_event(
        user, SecurityEventKind.SECOND_FACTOR_ADDED, request=request, detail=authenticator.type
    )


@receiver(mfa_signals.authenticator_removed)
def record_removed_factor(
    sender: Any, request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any
) -> None:
    """Record it, and end the other sessions: one of them may have been opened with the removed factor."""
    record_security_event(
        user, SecurityEventKind.SECOND_FACTOR_REMOVED, request=request, detail=authenticator.type
    )
    end_other_sessions(request, user)


@receiver(mfa_signals.authenticator_reset)
def record_new_recovery_codes(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    record_security_event(user, SecurityEventKind.RECOVERY_CODES_GENERATED, request=request)


@receiver(mfa_signals.authenticator_used)
def record_used_recovery_code(
    sender: Any, request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any
) -> None:
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        record_security_event(user, SecurityEventKind.RECOVERY_CODE_USED, request=request)


@receiver(mfa_signals.authentication_failed)
def record_failed_factor(
    sender: Any, request: HttpRequest, user: User, authenticator: Authenticator, **kwargs: Any
) -> None:
    record_security_event(
        user,
        SecurityEventKind.SECOND_FACTOR_FAILED,
        request=request,
        detail=authenticator.type,
    )
