"""A session expires after twelve hours, or after one hour without use."""

import time

import pytest
import time_machine
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session

START = 1_800_000_000
MINUTE, HOUR = 60, 3600

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice_in(client):
    user = get_user_model().objects.create_user(email="alice@example.com", password="a long enough secret")
    with time_machine.travel(START, tick=False):
        client.force_login(user)
        client.get("/accounts/email/")
    return client


def is_in(client, at):
    with time_machine.travel(START + at, tick=False):
        return client.get("/accounts/sessions/").status_code == 200


def test_an_hour_without_use_ends_it(alice_in):
    assert is_in(alice_in, 59 * MINUTE)
    assert not is_in(alice_in, 59 * MINUTE + HOUR)
    assert Session.objects.count() == 0


@pytest.mark.slow
def test_use_keeps_a_session_alive_and_twelve_hours_end_it_whatever_was_done(alice_in):
    for minutes in range(50, 12 * 60, 50):
        assert is_in(alice_in, minutes * MINUTE), minutes
    assert not is_in(alice_in, 12 * HOUR)


def test_a_session_is_written_at_most_once_a_minute(alice_in):
    def writes(at):
        with time_machine.travel(START + at, tick=False), CaptureWrites() as captured:
            alice_in.get("/accounts/sessions/")
        return captured.count

    assert is_in(alice_in, 1)
    assert writes(30) == 0
    assert writes(MINUTE) == 1
    assert writes(MINUTE + 59) == 0


class CaptureWrites:
    """Count the statements that write to the session table."""

    def __enter__(self):
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        self._context = CaptureQueriesContext(connection)
        self._context.__enter__()
        return self

    def __exit__(self, *details):
        self._context.__exit__(*details)
        written = [
            row["sql"] for row in self._context.captured_queries if 'UPDATE "django_session"' in row["sql"]
        ]
        self.count = len(written)


def test_strangers_get_no_session(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert not answer.cookies


@pytest.mark.slow
def test_a_page_that_polls_does_not_keep_a_log_in_alive(as_alice, workspace):
    session = as_alice.session
    then = int(time.time()) - 600
    session["started_at"], session["seen_at"] = then, then
    session.save()
    as_alice.get(f"/w/{workspace.slug}/", headers={"HX-Request": "true"})
    assert as_alice.session["seen_at"] == then
    as_alice.get(f"/w/{workspace.slug}/")
    assert as_alice.session["seen_at"] > then


def test_a_polling_page_is_reloaded_after_the_session_has_ended(client, workspace):
    answer = client.get(f"/w/{workspace.slug}/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Refresh"]) == (204, "true")
