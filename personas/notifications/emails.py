"""Send notifications by email: one digest for each member with what is still unread."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog
from django.db import DatabaseError, transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.db.workspace_scope import workspace_scope
from personas.limits.emails import build_public_url, can_send_digest, send_text_email
from personas.models import Membership, Notification
from personas.notifications.descriptions import NotificationText, describe_notifications
from personas.notifications.selectors import find_members_to_email, select_to_email
from personas.tenancy.lost_nodes import list_from_workspaces

log = structlog.get_logger(__name__)

# How long a notification waits before it is emailed. If it is read in the app meanwhile, it is not sent.
EMAIL_DELAY = timedelta(minutes=5)
# Notifications that are older than this are no longer emailed.
MAX_EMAIL_AGE = timedelta(days=1)
MAX_LINES = 30


def send_notification_emails() -> int:
    """Send a digest to each member of each workspace who has one to get. Return how many were sent."""
    now = timezone.now()
    find = partial(find_members_to_email, now - MAX_EMAIL_AGE, now - EMAIL_DELAY)
    sent = 0
    for workspace_id, member_id in list_from_workspaces(find):
        try:
            with workspace_scope(workspace_id):
                sent += send_digest(workspace_id, member_id)
        except (OSError, DatabaseError):
            # Errors of smtplib and of sockets are OSErrors. The next run tries again.
            log.exception("notification_email_failed", workspace=workspace_id, member=member_id)
    return sent


def send_digest(workspace_id: int, member_id: int) -> bool:
    """Send a member the unread notifications in one email; return whether there were any.

    They are marked as sent before, so that no lock is held while the mail server answers, and no other worker
    sends them too. If it does not accept the email, the next run tries again.
    """
    member, notifications = claim_notifications(workspace_id, member_id)
    if member is None or not notifications:
        return False
    texts = describe_notifications(member.workspace, notifications)
    try:
        send_text_email(build_subject(member, texts), build_digest(member, texts), member.user.email)
    except OSError:
        rows = Notification.objects.in_workspace(workspace_id)
        rows.filter(pk__in=[row.pk for row in notifications]).update(emailed_at=None)
        raise
    return True


@transaction.atomic
def claim_notifications(workspace_id: int, member_id: int) -> tuple[Membership | None, list[Notification]]:
    """Mark the notifications of a member as sent, and return them with the member."""
    members = Membership.objects.in_workspace(workspace_id).filter(pk=member_id, user__is_active=True)
    locked = members.select_for_update(of=("self",), no_key=True, skip_locked=True)
    member = locked.select_related("user", "workspace").first()
    now = timezone.now()
    rows = Notification.objects.in_workspace(workspace_id).filter(member=member_id)
    # Include notifications younger than EMAIL_DELAY, so that they need no separate email.
    rows = select_to_email(rows, after=now - MAX_EMAIL_AGE, until=now)
    if member is None:
        return None, []
    notifications = list(rows.select_related("event__actor").order_by("-at", "-pk"))
    if not notifications or not can_send_digest(workspace_id, member.user.email):
        # If the daily limit is reached, the notifications stay unsent until the first email of the next day.
        return None, []
    rows.filter(pk__in=[row.pk for row in notifications]).update(emailed_at=now)
    return member, notifications


def build_subject(member: Membership, texts: Sequence[NotificationText]) -> str:
    name = member.workspace.name
    if len(texts) == 1:
        return _("%(title)s (%(workspace)s)") % {"title": texts[0].title, "workspace": name}
    text = ngettext(
        "%(count)s notification from %(workspace)s",
        "%(count)s notifications from %(workspace)s",
        len(texts),
    )
    return text % {"count": len(texts), "workspace": name}


def build_digest(member: Membership, texts: Sequence[NotificationText]) -> str:
    slug = member.workspace.slug
    context = {
        "workspace": member.workspace,
        "lines": [(text, build_public_url(text.url)) for text in texts[:MAX_LINES]],
        "more": max(0, len(texts) - MAX_LINES),
        "list_url": build_public_url(reverse("notifications:list", args=[slug])),
        "preferences_url": build_public_url(reverse("notifications:preferences", args=[slug])),
    }
    return render_to_string("personas/notifications/digest.txt", context)
