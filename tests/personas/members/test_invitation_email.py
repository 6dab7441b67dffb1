"""The email of an invitation by API is sent after the commit; if it cannot be sent, the response says so."""

import pytest
from django.core import mail

from tests.factories import make_user, make_workspace


@pytest.mark.django_db(transaction=True)
def test_an_email_that_cannot_be_sent_is_a_503_and_can_be_sent_again(key_for, settings):
    """No mail server is at this port."""
    alice = make_user("Alice")
    admin = key_for(make_workspace("Harbour", owner=alice), alice)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    answer = admin.post("invitations", {"email": "dora@example.com", "role": "viewer"})
    assert (answer.status_code, answer.json()["code"]) == (503, "email_not_sent")
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    [offer] = admin.get("invitations").json()["items"]
    assert admin.post(f"invitations/{offer['id']}:resend").status_code == 201
    assert len(mail.outbox) == 1
