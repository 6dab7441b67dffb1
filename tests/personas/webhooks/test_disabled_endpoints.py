"""An endpoint that is disabled by 410 or by failures for days notifies owners and admins, also by email."""

from datetime import timedelta

import pytest
import time_machine
from django.core import mail
from django.utils import timezone

from personas.models import EndpointStatus, Notification, NotificationKind, Workspace
from personas.notifications.emails import EMAIL_DELAY, send_notification_emails
from personas.notifications.rules import NOTIFICATION_RULES
from personas.notifications.services import create_all_notifications
from personas.roles import Role
from personas.webhooks.retries import MAX_ATTEMPTS
from personas.webhooks.services import delete_endpoint
from tests.factories import BY, join, make_user
from tests.personas.webhooks.receivers import Answer, receiving
from tests.personas.webhooks.test_deliveries import local_receivers, make_endpoint, move, run  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESSES = ["admin@example.com", "alice@example.com"]


@pytest.fixture(autouse=True)
def people(workspace) -> None:
    join(workspace, make_user("Admin"), Role.ADMIN)
    join(workspace, make_user("Editor"), Role.EDITOR)


def disable(workspace: Workspace, status: int) -> EndpointStatus:
    """Send an event to an endpoint that answers with this status until it is disabled."""
    attempts = 1 if status == 410 else MAX_ATTEMPTS
    with receiving(Answer(status)) as receiver:
        endpoint, _ = make_endpoint(workspace, receiver.url, "Desk")
        move(workspace)
        now = timezone.now()
        for number in range(attempts):
            with time_machine.travel(now + timedelta(days=2 * number)):
                run()
    endpoint.refresh_from_db()
    return EndpointStatus(endpoint.status)


def check_notified(workspace: Workspace, status: int, expected: EndpointStatus) -> None:
    assert disable(workspace, status) == expected
    create_all_notifications()
    rows = Notification.objects.in_workspace(workspace).filter(kind=NotificationKind.WEBHOOK_DISABLED)
    assert rows.count() == 2
    # A notification has the time of its event, for which the clock was moved.
    rows.update(at=timezone.now() - EMAIL_DELAY - timedelta(seconds=1))
    send_notification_emails()
    assert sorted(message.to[0] for message in mail.outbox) == ADDRESSES
    for message in mail.outbox:
        assert "A webhook endpoint was disabled" in message.subject
        assert "Desk" in message.body
        assert f"/w/{workspace.slug}/webhooks/" in message.body


@pytest.mark.parametrize(("status", "expected"), [(410, EndpointStatus.GONE), (500, EndpointStatus.FAILING)])
def test_owners_and_admins_are_notified_by_bell_and_email(workspace, status, expected):
    check_notified(workspace, status, expected)


@pytest.mark.planted
def test_an_endpoint_that_is_disabled_silently_is_detected(workspace, monkeypatch):
    monkeypatch.delitem(NOTIFICATION_RULES, "webhook.disabled")
    with pytest.raises(AssertionError):
        check_notified(workspace, 410, EndpointStatus.GONE)


def test_a_member_who_disables_an_endpoint_notifies_no_one(workspace):
    with receiving() as receiver:
        endpoint, _ = make_endpoint(workspace, receiver.url, "Desk")
        delete_endpoint(endpoint, by=BY)
    create_all_notifications()
    assert not Notification.objects.in_workspace(workspace).exists()
