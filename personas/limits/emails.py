"""Emails: links with the public URL, one line as subject, and a limit per address and day.

Every email of the product passes `can_send_email` or `count_invitation` first. The limits of different kinds
do not touch each other: nobody can suppress a security notice by requesting many password resets.
"""

from enum import StrEnum
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.core.mail import send_mail
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from personas.limits.daily_usage import DailyLimitReached, use_daily_limit
from personas.limits.persons import find_person_id
from personas.workspaces.models import User, Workspace

log = structlog.get_logger(__name__)

ADDRESS_SALT = "personas.limits.address"
# Notification emails of one workspace may use the daily limit of an address divided by this number.
DIGEST_SHARE = 2


class EmailKind(StrEnum):
    """Why an email is sent; each kind has a limit of its own."""

    # Caused by a visitor without a password: password reset, sign-up.
    VISITOR = "visitor_email"
    # Caused by the user of the account or by an operator: notices about a changed password and the like.
    ACCOUNT = "account_email"
    DIGEST = "digest_email"
    INVITATION = "invitation_email"


def build_public_url(path_or_url: str) -> str:
    """Return the URL with the host of PUBLIC_URL, whatever the Host header of the request was."""
    parts = urlsplit(path_or_url)
    return f"{settings.PUBLIC_URL}{parts._replace(scheme='', netloc='').geturl()}"


def build_subject_line(text: str) -> str:
    """Collapse whitespace: a line break in the name of a workspace could inject an email header."""
    return " ".join(text.split())


def send_text_email(subject: str, text: str, address: str) -> None:
    """Send an email that was counted. Errors of smtplib and of sockets are OSErrors."""
    send_mail(build_subject_line(subject), text, None, [address])


def get_address_key(address: str) -> str:
    """Return a keyed digest of an address. `a+b@example.com` is the same mailbox as `a@example.com`."""
    local, _at, domain = address.strip().lower().rpartition("@")
    mailbox = f"{local.partition('+')[0]}@{domain}"
    return salted_hmac(ADDRESS_SALT, mailbox, algorithm="sha256").hexdigest()[:40]


def can_send_email(kind: EmailKind, address: str) -> bool:
    """Count an email to this address; return False if there were too many today.

    The caller then sends nothing and answers as always: the answer must not depend on the address.
    """
    limit: int = (
        settings.DRAMATIS_VISITOR_EMAILS_PER_ADDRESS
        if kind == EmailKind.VISITOR
        else settings.DRAMATIS_EMAILS_PER_ADDRESS
    )
    if use_daily_limit(kind, get_address_key(address), limit):
        return True
    log.warning("email_limit_reached", kind=str(kind))
    return False


def can_send_digest(workspace_id: int, address: str) -> bool:
    """Count an email with notifications. One workspace cannot use up what those of others need."""
    limit: int = settings.DRAMATIS_EMAILS_PER_ADDRESS
    subject = f"{get_address_key(address)}:{workspace_id}"
    share = max(1, limit // DIGEST_SHARE) if limit else 0
    return use_daily_limit("workspace_digest", subject, share) and can_send_email(EmailKind.DIGEST, address)


def count_invitation(workspace: Workspace, address: str, inviter: User) -> None:
    """Count an invitation, new or resent. Raise DailyLimitReached if there were too many today.

    Called in the transaction that creates the invitation, so a refused one is not counted.
    """
    persons = sorted({inviter.pk, find_person_id(workspace.pk) or inviter.pk})
    counters: list[tuple[str, str | int, str]] = [
        ("workspace", workspace.pk, _("this workspace")),
        *(("person", person, _("one person")) for person in persons),
        ("address", get_address_key(address), _("one address")),
    ]
    for owner, subject, label in counters:
        setting = f"DRAMATIS_INVITATIONS_PER_{owner.upper()}"
        limit: int = getattr(settings, setting)
        if not use_daily_limit(f"{owner}_invitations", subject, limit):
            message = _(
                "The daily limit of invitations for %(owner)s is %(limit)s, resent ones included. The "
                "operator sets it with %(setting)s. It resets at 00:00 UTC."
            )
            raise DailyLimitReached(message % {"owner": label, "limit": limit, "setting": setting})
