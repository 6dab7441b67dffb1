"""Accounts: sign-up, sign-in, sign-out, second factors, rate limits and sessions."""

import re
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.core import mail
from playwright.sync_api import expect

from personas.models import User
from tests.browser.users import Visit, field
from tests.factories import PASSWORD

pytestmark = pytest.mark.slow

NEW_PASSWORD = "an-entirely-new-lantern-7"


@pytest.fixture
def stranger(visitor):
    return Visit(visitor())


@pytest.fixture
def alice_with_password(alice, workspace):
    alice.set_password(PASSWORD)
    alice.save()
    return alice


def sign_in(visit, email="alice@example.com", password=PASSWORD):
    visit.go("/accounts/login/")
    visit.fill(Email=email, Password=password)
    visit.press("Sign in")


def open_with_password(visit, address):
    """Open a page that requires the password again, and confirm it."""
    visit.go(address)
    visit.fill(Password=PASSWORD)
    visit.press("Confirm")


def link_in_last_mail():
    match = re.search(r"https?://\S+", str(mail.outbox[-1].body))
    assert match
    return match[0]


def code_of(user, ahead=0):
    secret = totp.decrypt(Authenticator.objects.get(user=user, type="totp").data["secret"])
    return code_for(secret, ahead)


def code_for(secret, ahead=0):
    counter = list(totp.yield_hotp_counters_from_time())[1] + ahead
    return totp.format_hotp_value(totp.hotp_value(secret, counter))


@pytest.fixture
def tolerant_totp(settings):
    """Accept TOTP codes one period old or early, so that no test waits for the next one."""
    settings.MFA_TOTP_TOLERANCE = 1


def test_a_user_signs_in_and_out_and_resets_a_forgotten_password(stranger, alice_with_password):
    stranger.go("/w/harbour/agents/")
    stranger.fill(Email="alice@example.com", Password=PASSWORD)
    stranger.press("Sign in")
    expect(stranger.page).to_have_url(re.compile("/w/harbour/agents/$"))
    stranger.page.get_by_text("Account: Alice").locator("..").click()
    stranger.leave_by(stranger.page.get_by_role("button", name="Sign out"))
    expect(stranger.page.get_by_role("heading", name="Welcome back")).to_be_visible()
    stranger.go("/w/harbour/")
    expect(stranger.page).to_have_url(re.compile("/accounts/login/"))

    stranger.leave_by(stranger.page.get_by_role("link", name="Forgot"))
    stranger.fill(Email="alice@example.com")
    stranger.press("Send link")
    stranger.go(link_in_last_mail())
    stranger.fill(**{"New Password": NEW_PASSWORD, "New Password (again)": NEW_PASSWORD})
    stranger.press("Change Password")
    sign_in(stranger, password=NEW_PASSWORD)
    expect(stranger.page).to_have_url(re.compile("/w/harbour/$"))


@pytest.mark.hard
def test_wrong_passwords_reveal_nothing_and_five_of_them_block_sign_in(
    stranger, alice_with_password, client, live_server
):
    alerts = []
    for email in ("alice@example.com", "nobody@example.com"):
        sign_in(stranger, email, "not-the-right-lantern")
        alert = stranger.page.get_by_role("alert")
        expect(alert).to_have_count(1)
        alerts.append(alert.inner_text())
    assert alerts[0] == alerts[1]
    assert field(stranger.page, "Email").input_value() == "nobody@example.com"
    wrong = {"login": "alice@example.com", "password": "not-the-right-lantern"}
    for _ in range(4):
        client.post("/accounts/login/", wrong, headers={"host": urlsplit(live_server.url).netloc})
    sign_in(stranger)
    expect(stranger.page.get_by_role("alert")).to_contain_text("Too many failed sign-in attempts")


def test_a_new_user_signs_up_confirms_the_address_and_creates_a_workspace(stranger):
    stranger.go("/accounts/signup/")
    stranger.fill(Email="carol@example.com", Password="short", **{"Password (again)": "short"})
    stranger.press("Sign up")
    stranger.sees_field_error("Password", "at least 12 characters")
    assert field(stranger.page, "Email").input_value() == "carol@example.com"
    assert not User.objects.exists()
    stranger.fill(Password=NEW_PASSWORD, **{"Password (again)": NEW_PASSWORD})
    stranger.press("Sign up")
    stranger.sees("Verify Your Email Address")
    stranger.go(link_in_last_mail())
    stranger.press("Confirm")
    if "/accounts/login/" in stranger.page.url:
        sign_in(stranger, "carol@example.com", NEW_PASSWORD)
    stranger.sees("No workspaces yet")
    stranger.follow("Create a workspace")
    stranger.fill(Name="Lighthouse", Slug="lighthouse")
    stranger.press("Create workspace")
    stranger.sees_message("Lighthouse")
    expect(stranger.page).to_have_url(re.compile("/w/lighthouse/$"))


@pytest.mark.hard
def test_an_authenticator_app_is_set_up_and_then_required(stranger, alice_with_password, tolerant_totp):
    sign_in(stranger)
    open_with_password(stranger, "/accounts/2fa/totp/activate/")
    secret = stranger.page.get_by_label("Authenticator secret").input_value()
    stranger.fill(**{"Authenticator code": code_for(secret)})
    stranger.press("Activate")
    expect(stranger.page).to_have_url(re.compile("/accounts/2fa/recovery-codes/"))
    stranger.page.context.clear_cookies()
    sign_in(stranger)
    stranger.fill(Code="000000")
    stranger.leave_by(stranger.page.get_by_role("button", name="Sign In"))
    stranger.sees("Incorrect code")
    stranger.fill(Code=code_of(alice_with_password, ahead=1))
    stranger.leave_by(stranger.page.get_by_role("button", name="Sign In"))
    expect(stranger.page).to_have_url(re.compile("/w/harbour/$"))


@pytest.mark.hard
def test_a_passkey_is_added_and_signs_in_without_a_password(visitor, alice_with_password):
    stranger = Visit(visitor(alone=True))
    devtools = stranger.page.context.new_cdp_session(stranger.page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    sign_in(stranger)
    open_with_password(stranger, "/accounts/2fa/webauthn/add/")
    stranger.fill(Name="Laptop")
    stranger.page.get_by_label("Passwordless").check()
    stranger.press("Add")
    expect(stranger.page).not_to_have_url(re.compile("/webauthn/add/"))
    assert Authenticator.objects.get(type="webauthn").user == alice_with_password
    stranger.page.context.clear_cookies()
    stranger.go("/accounts/login/")
    stranger.press("Sign in with a passkey")
    expect(stranger.page).to_have_url(re.compile("/w/harbour/$"))


@pytest.mark.hard
def test_another_session_is_ended_and_the_profile_edited(stranger, alice_with_password, visitor):
    elsewhere = Visit(
        visitor(user_agent="Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
    )
    sign_in(elsewhere)
    sign_in(stranger)
    stranger.go("/accounts/sessions/")
    stranger.sees("Firefox")
    stranger.sees("This browser")
    stranger.press("Sign out all other sessions")
    elsewhere.go("/w/harbour/")
    expect(elsewhere.page).to_have_url(re.compile("/accounts/login/"))
    assert stranger.go("/w/harbour/") == 200

    stranger.go("/profile/")
    stranger.fill(**{"Name": "Alice Harbour", "Time zone": "Asia/Tokyo"})
    stranger.press("Save")
    stranger.sees_message("Saved")
    alice_with_password.refresh_from_db()
    assert (alice_with_password.name, alice_with_password.timezone) == ("Alice Harbour", "Asia/Tokyo")
    field(stranger.page, "Time zone").evaluate("element => element.options[0].value = 'Mars/Olympus'")
    field(stranger.page, "Time zone").select_option("Mars/Olympus")
    assert stranger.press("Save") == 422
    stranger.sees_field_error("Time zone", "Mars/Olympus")
