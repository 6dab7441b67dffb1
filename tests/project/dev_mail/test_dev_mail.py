"""Emails of a development server: stored, listed on a page, and not in production."""

import pytest
from django.core.mail import EmailMessage, get_connection
from django.test import Client

BACKEND = "project.dev_mail.backend.EmailBackend"


@pytest.fixture
def folder(settings, tmp_path):
    settings.VAR = tmp_path
    return tmp_path / "mail"


def send(subject: str, body: str) -> None:
    EmailMessage(subject, body, to=["bob@example.com"], connection=get_connection(BACKEND)).send()


@pytest.mark.django_db
def test_an_email_is_stored_announced_and_shown_with_its_links(folder, capsys):
    send("Join Harbour", "Follow <this> link:\n\nhttp://localhost/invitations/abc/\n")
    assert "Email to bob@example.com: Join Harbour. Read it at " in capsys.readouterr().err
    html = Client().get("/dev/mail/").content.decode()
    assert "Join Harbour" in html
    assert "bob@example.com" in html
    assert '<a href="http://localhost/invitations/abc/"' in html
    assert "&lt;this&gt;" in html


@pytest.mark.django_db
def test_without_emails_the_page_says_so(folder):
    assert "No emails yet" in Client().get("/dev/mail/").content.decode()


@pytest.mark.django_db
def test_production_has_no_such_page(folder, settings):
    settings.PRODUCTION = True
    assert Client().get("/dev/mail/").status_code == 404


@pytest.mark.django_db
def test_other_machines_get_no_such_page(folder):
    assert Client(REMOTE_ADDR="203.0.113.7").get("/dev/mail/").status_code == 404
