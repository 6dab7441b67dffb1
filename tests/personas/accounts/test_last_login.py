"""The time of the last sign-in is saved, and a failure to save it does not prevent the sign-in."""

import pytest
from django.contrib.auth import user_logged_in
from django.contrib.auth.models import update_last_login
from django.db import OperationalError
from django.db.models.signals import pre_save
from django.test import Client
from structlog.testing import capture_logs

from personas.models import User

pytestmark = pytest.mark.django_db


def test_signing_in_saves_the_time(alice):
    Client().force_login(alice)
    alice.refresh_from_db()
    assert alice.last_login is not None


def test_a_node_that_is_lost_does_not_prevent_a_sign_in(alice):
    def fail(**kwargs):
        raise OperationalError("connection to the remote node failed")

    client = Client()
    pre_save.connect(fail, sender=User)
    try:
        with capture_logs() as logs:
            client.force_login(alice)
    finally:
        pre_save.disconnect(fail, sender=User)
    assert [entry["event"] for entry in logs] == ["last_login_not_saved"]
    assert client.get("/").status_code in {200, 302}


def test_the_receiver_of_django_is_not_connected():
    receivers = [
        reference() if callable(reference) else reference for _, reference, *_ in user_logged_in.receivers
    ]
    assert update_last_login not in receivers
