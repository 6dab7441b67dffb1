"""Security events: in the log with a shortened address, and in the list of the account's user only."""

from datetime import timedelta

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.utils import timezone
from structlog.testing import capture_logs

from personas.accounts import services
from personas.accounts.services import record_security_event, shorten_address
from personas.models import SecurityEvent, SecurityEventKind
from project.retention import purge_security_events
from tests.factories import PASSWORD, signed_in
from tests.module_fixtures import commits_heard
from tests.personas.accounts.sign_in import (
    HOME_ADDRESS,
    OTHER_ADDRESS,
    browser_at,
    enter_code,
    give_password,
    give_totp,
    is_signed_in,
    post_login,
    sign_in,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PAGE = "/profile/security/"


def kinds(user):
    return list(SecurityEvent.objects.filter(user=user).order_by("pk").values_list("kind", flat=True))


def reauthenticate(browser):
    browser.post("/accounts/reauthenticate/", {"password": PASSWORD})


@pytest.fixture
def bob(bob):
    return give_password(bob)


# --- what is recorded ----------------------------------------------------------------------------------


def test_a_sign_in_a_failure_and_a_sign_out_are_recorded(bob):
    post_login(browser_at(), bob.email, "wrong")
    browser = sign_in(bob)
    browser.post("/accounts/logout/")
    post_login(browser, bob.email)
    assert kinds(bob) == ["sign_in_failed", "signed_in", "signed_out", "signed_in"]
    details = SecurityEvent.objects.filter(kind="signed_in").order_by("pk").values_list("detail", flat=True)
    assert list(details) == ["new device", ""]


def test_a_refused_sign_in_is_recorded_and_repetitions_are_counted(bob):
    for _ in range(8):
        post_login(browser_at(OTHER_ADDRESS), bob.email, "wrong")
    rows = SecurityEvent.objects.filter(user=bob).order_by("pk")
    assert [(row.kind, row.count, row.network) for row in rows] == [
        ("sign_in_failed", 5, "198.51.100.0/24"),
        ("sign_in_delayed", 3, "198.51.100.0/24"),
    ]


def test_password_changes_and_resets_are_recorded(bob, mailoutbox):
    browser = sign_in(bob)
    new = "another long secret"
    fields = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    browser.post("/accounts/password/change/", fields)
    other = browser_at()
    other.post("/accounts/password/reset/", {"email": bob.email})
    link = next(part for part in mailoutbox[-1].body.split() if "/reset/key/" in part)
    path = other.get("/" + link.partition("//")[2].partition("/")[2], follow=True).redirect_chain[-1][0]
    other.post(path, {"password1": PASSWORD, "password2": PASSWORD})
    assert kinds(bob) == ["signed_in", "password_changed", "password_reset_requested", "password_reset"]


def test_second_factors_are_recorded(bob):
    with commits_heard():
        browser = sign_in(bob)
        reauthenticate(browser)
        browser.get("/accounts/2fa/totp/activate/")
        enter_code(browser, browser.session["mfa.totp.secret"], "/accounts/2fa/totp/activate/")
        browser.post("/accounts/2fa/recovery-codes/generate/")
        codes = RecoveryCodes(Authenticator.objects.get(user=bob, type="recovery_codes")).get_unused_codes()
        browser.post("/accounts/logout/")
        post_login(browser, bob.email)
        browser.post("/accounts/2fa/authenticate/", {"code": "000000"})
        browser.post("/accounts/2fa/authenticate/", {"code": codes[0]})
        assert is_signed_in(browser)
        reauthenticate(browser)
        browser.post("/accounts/2fa/totp/deactivate/")
    recorded = kinds(bob)
    for kind in (
        "second_factor_added",
        "recovery_codes_generated",
        "second_factor_failed",
        "recovery_code_used",
        "second_factor_removed",
    ):
        assert kind in recorded, recorded


def test_a_session_ended_from_the_list_is_recorded_and_rejected(bob):
    browser, other = sign_in(bob), sign_in(bob, address=OTHER_ADDRESS)
    browser.post("/accounts/sessions/")
    assert "session_ended" in kinds(bob)
    assert is_signed_in(browser)
    assert not is_signed_in(other)


def test_removing_a_second_factor_ends_the_other_sessions(bob):
    secret = give_totp(bob)
    browser, other = sign_in(bob, secret=secret), sign_in(bob, secret=secret)
    reauthenticate(browser)
    browser.post("/accounts/2fa/totp/deactivate/")
    assert not Authenticator.objects.filter(user=bob).exists()
    assert is_signed_in(browser)
    assert not is_signed_in(other)


def test_email_addresses_are_recorded(bob):
    browser = sign_in(bob)
    reauthenticate(browser)
    browser.post("/accounts/email/", {"action_add": "", "email": "second@example.com"})
    browser.post("/accounts/email/", {"action_remove": "", "email": "second@example.com"})
    assert kinds(bob)[-2:] == ["email_added", "email_removed"]


# --- log -----------------------------------------------------------------------------------------------


def test_each_event_is_logged_with_a_shortened_address_and_without_email_or_password(bob):
    with capture_logs() as lines:
        post_login(browser_at("192.0.2.77"), bob.email, "wrong-secret-word")
        post_login(browser_at("192.0.2.77"), "nobody@example.com", "wrong-secret-word")
    events = [line for line in lines if line["event"] == "sign_in_failed"]
    assert [(line["account_id"], line["network"]) for line in events] == [
        (bob.pk, "192.0.2.0/24"),
        (None, "192.0.2.0/24"),
    ]
    text = str(lines)
    assert not any(part in text for part in ("192.0.2.77", bob.email, "nobody@", "wrong-secret-word"))


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ("not an address", ""),
        ("", ""),
    ],
)
def test_addresses_are_shortened(address, network):
    assert shorten_address(address) == network


# --- page ----------------------------------------------------------------------------------------------


def test_the_page_lists_own_events_newest_first_and_is_in_the_account_menu(bob, alice):
    record_security_event(alice, SecurityEventKind.PASSWORD_CHANGED, detail="not for Bob")
    browser = sign_in(bob)
    page = browser.get(PAGE)
    text = page.content.decode()
    assert "Signed in" in text
    assert "New device" in text
    assert "192.0.2.0/24" in text
    assert HOME_ADDRESS not in text
    assert "not for Bob" not in text
    assert "Password changed" not in text
    assert f'href="{PAGE}"' in browser.get("/profile/").content.decode()


def test_visitors_are_sent_to_the_login_and_nobody_can_write(client, bob):
    assert client.get(PAGE)["Location"].startswith("/accounts/login/")
    assert signed_in(bob).post(PAGE).status_code == 405


def test_text_of_a_browser_is_escaped(bob):
    browser = browser_at()
    browser.defaults["HTTP_USER_AGENT"] = "<script>alert(1)</script>"
    post_login(browser, bob.email)
    text = browser.get(PAGE).content.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_older_events_are_on_the_next_page(bob):
    for number in range(60):
        record_security_event(bob, SecurityEventKind.SIGNED_OUT, detail=f"number {number:02}")
    browser = signed_in(bob)
    first = browser.get(PAGE)
    assert first.content.decode().count("number ") == 50
    second = browser.get(f"{PAGE}?{first.context['older']}").content.decode()
    assert second.count("number ") == 10
    assert browser.get(f"{PAGE}?before=nothing").status_code == 200


# --- size and retention --------------------------------------------------------------------------------


def test_a_distributed_attack_does_not_fill_the_table(bob, monkeypatch):
    monkeypatch.setattr(services, "MAX_REPEATED_ROWS", 10)
    for number in range(20):
        post_login(browser_at(f"203.0.{number}.1"), bob.email, "wrong")
    assert SecurityEvent.objects.filter(user=bob).count() == 10


def test_old_events_are_deleted(bob, settings):
    settings.DRAMATIS_KEEP_SECURITY_EVENTS_DAYS = 30
    with time_machine.travel(timezone.now() - timedelta(days=31)):
        record_security_event(bob, SecurityEventKind.SIGNED_IN)
    record_security_event(bob, SecurityEventKind.SIGNED_OUT)
    assert purge_security_events() == 1
    assert kinds(bob) == ["signed_out"]
    settings.DRAMATIS_KEEP_SECURITY_EVENTS_DAYS = 0
    assert purge_security_events() == 0
