"""Emails by SMTP: a mail server that hangs holds few threads, none for long, and the response says so."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.mail import send_mail

from core.outgoing import email_backend
from core.outgoing.email_backend import MAX_SENDING, MailServerUnavailable, sending_slots
from core.request_body import SLOT_WAIT_SECONDS
from tests.slow_mail_server import MailServer, mail_server

SECONDS = 1.0


@pytest.fixture(autouse=True)
def limited_backend(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.EMAIL_BACKEND = "core.outgoing.email_backend.LimitedEmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_USE_TLS = "127.0.0.1", False
    monkeypatch.setattr(email_backend, "MAX_SEND_SECONDS", SECONDS)


def send_one(_: object = None) -> tuple[bool, float]:
    """Whether an email was sent, and how long it took."""
    began = time.monotonic()
    try:
        send_mail("Tea", "At five.", None, ["bob@example.com"])
    except MailServerUnavailable:
        return False, time.monotonic() - began
    return True, time.monotonic() - began


def wait_until_free() -> None:
    deadline = time.monotonic() + 30
    while vars(sending_slots)["_taken"] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert vars(sending_slots)["_taken"] == 0


def test_an_email_is_sent(settings):
    with mail_server(is_slow=False) as server:
        settings.EMAIL_PORT = server.port
        assert send_one()[0]
        assert "At five." in server.received[0]
    wait_until_free()


def test_a_mail_server_that_is_away_is_an_error(settings):
    settings.EMAIL_PORT = 1
    assert not send_one()[0]
    wait_until_free()


def check_slow_server(server: MailServer) -> None:
    """Sixteen threads want to send: two wait for a second, the others are refused."""
    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(send_one, range(16)))
    assert not any(is_sent for is_sent, _ in results)
    assert sum(seconds >= SECONDS for _, seconds in results) <= MAX_SENDING
    assert len(server.connections) <= MAX_SENDING
    # The slots are still taken: nothing waits any more.
    time.sleep(SLOT_WAIT_SECONDS)
    assert send_one()[1] < SECONDS
    assert len(server.connections) <= MAX_SENDING


def test_a_mail_server_that_hangs_holds_two_threads_and_not_for_long(settings):
    with mail_server(is_slow=True) as server:
        settings.EMAIL_PORT = server.port
        check_slow_server(server)
    wait_until_free()
    with mail_server(is_slow=False) as server:
        settings.EMAIL_PORT = server.port
        assert send_one()[0]
    wait_until_free()


@pytest.mark.planted
def test_a_backend_without_slots_is_found(settings, monkeypatch):
    acquired: list[bool] = []
    released: list[bool] = []

    def acquire(*, is_few: bool) -> bool:
        acquired.append(is_few)
        return True

    monkeypatch.setitem(vars(sending_slots), "acquire", acquire)
    monkeypatch.setitem(vars(sending_slots), "release", lambda *, is_few: released.append(is_few))
    with mail_server(is_slow=True) as server:
        settings.EMAIL_PORT = server.port
        with pytest.raises(AssertionError):
            check_slow_server(server)
    # A thread that outlives this test would release a slot of the next one.
    deadline = time.monotonic() + 30
    while len(released) < len(acquired) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(released) == len(acquired) > MAX_SENDING


@pytest.mark.django_db(transaction=True)
def test_a_page_whose_email_cannot_be_sent_is_a_503(settings, client):
    client.raise_request_exception = False
    with mail_server(is_slow=True) as server:
        settings.EMAIL_PORT = server.port
        response = client.post("/accounts/password/reset/", {"email": "bob@example.com"})
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert "The email could not be sent" in response.content.decode()
    wait_until_free()
