"""The page with the emails of a development server."""

import email
import email.policy
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

MAX_EMAILS = 50
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@dataclass(frozen=True)
class StoredEmail:
    recipients: str
    subject: str
    sent_at: datetime
    text: str


def list_stored_emails(folder: Path) -> list[StoredEmail]:
    """Return the newest emails that the development backend wrote."""
    paths = sorted(folder.glob("*.log"), key=lambda path: (path.stat().st_mtime, path.name), reverse=True)
    return [stored for path in paths[:MAX_EMAILS] for stored in read_stored_emails(path)]


def read_stored_emails(path: Path) -> list[StoredEmail]:
    """Read a file of Django's file backend: messages, each followed by a line of 79 hyphens."""
    sent_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    parts = path.read_bytes().split(b"\n" + b"-" * 79 + b"\n")
    messages = [email.message_from_bytes(part, policy=email.policy.default) for part in parts if part.strip()]
    return [build_stored_email(message, sent_at) for message in messages]


def build_stored_email(message: EmailMessage, sent_at: datetime) -> StoredEmail:
    body = message.get_body(("plain", "html"))
    text = str(body.get_content()) if body is not None else ""
    return StoredEmail(str(message["To"]), str(message["Subject"]), sent_at, text)


@login_not_required
def mailbox(request: HttpRequest) -> HttpResponse:
    """List the emails for browsers on this machine.

    404 in production, where emails go to an SMTP server. A new user reads here how to confirm an address.
    """
    if settings.PRODUCTION or request.META.get("REMOTE_ADDR") not in LOOPBACK:
        raise Http404
    emails = list_stored_emails(Path(settings.VAR) / "mail")
    return render(request, "dev_mail/mailbox.html", {"emails": emails})
