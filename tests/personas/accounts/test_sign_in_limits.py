"""Failed sign-ins: limits per account and address, a growing delay, and nobody can lock out another user."""

import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher

from personas.accounts import account_adapter, known_devices
from personas.accounts.sign_in_delays import FREE_FAILURES, MAX_DELAY, compute_delay
from personas.models import SecurityEvent, User
from tests.isolation.probe import CSRF
from tests.personas.accounts.sign_in import (
    HOME_ADDRESS,
    OTHER_ADDRESS,
    browser_at,
    give_password,
    is_signed_in,
    post_login,
    sign_in,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
START = 1_800_000_000
MANY_ADDRESSES = [f"203.0.113.{number}" for number in range(1, 120)]
# Two failures from each reach the longest delay.
ENOUGH_ADDRESSES = MANY_ADDRESSES[:12]


@pytest.fixture
def clock():
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture
def bob(bob):
    return give_password(bob)


def fail(email, address=OTHER_ADDRESS, times=5):
    for _ in range(times):
        post_login(browser_at(address), email, "wrong")


def attack(email, addresses, clock):
    """One wrong password from each address, each of which waits as long as it must."""
    for address in addresses:
        post_login(browser_at(address), email, "wrong")
    clock.shift(MAX_DELAY)
    for address in addresses:
        post_login(browser_at(address), email, "wrong")


def count_hashes(monkeypatch):
    """Count the password hashes that are computed, for a new hash or to check one."""
    hashes: list[str] = []

    def count(name):
        original = getattr(Argon2PasswordHasher, name)

        def counted(*args):
            hashes.append(name)
            return original(*args)

        monkeypatch.setattr(Argon2PasswordHasher, name, counted)

    count("encode")
    count("verify")
    return hashes


# --- nobody locks out others ---------------------------------------------------------------------------


def test_five_wrong_passwords_from_elsewhere_do_not_stop_a_known_device(bob, clock):
    browser = sign_in(bob)
    browser.post("/accounts/logout/")
    assert settings.DEVICE_COOKIE_NAME in browser.cookies
    fail(bob.email)
    post_login(browser, bob.email)
    assert is_signed_in(browser)


def test_a_known_device_is_not_stopped_by_an_attack_from_many_addresses_and_its_own(bob, clock):
    browser = sign_in(bob)
    browser.post("/accounts/logout/")
    attack(bob.email, ENOUGH_ADDRESSES, clock)
    fail(bob.email, HOME_ADDRESS, 25)
    clock.shift(60)  # an address may post thirty sign-ins a minute, whatever the account
    post_login(browser, bob.email)
    assert is_signed_in(browser)


def test_an_unknown_device_waits_for_a_bounded_time_while_the_attack_goes_on(bob, clock):
    attack(bob.email, ENOUGH_ADDRESSES, clock)
    browser = browser_at()
    answer = post_login(browser, bob.email)
    assert "Try again in 300 seconds" in answer.content.decode()
    for _ in range(6):
        clock.shift(MAX_DELAY / 6)
        fail(bob.email, MANY_ADDRESSES[50], 1)
        post_login(browser, bob.email)
    assert is_signed_in(browser)


def test_five_wrong_passwords_stop_only_their_own_address(bob, clock):
    fail(bob.email, OTHER_ADDRESS)
    assert "Too many" in post_login(browser_at(OTHER_ADDRESS), bob.email).content.decode()
    browser = browser_at(HOME_ADDRESS)
    post_login(browser, bob.email)
    clock.shift(compute_delay(FREE_FAILURES))
    post_login(browser, bob.email)
    assert is_signed_in(browser)
    clock.shift(15 * 60)
    other = browser_at(OTHER_ADDRESS)
    post_login(other, bob.email)
    assert is_signed_in(other)


def test_the_cookie_of_one_account_does_not_help_with_another(alice, bob, clock):
    browser = sign_in(give_password(alice))
    browser.post("/accounts/logout/")
    attack(bob.email, MANY_ADDRESSES[:10], clock)
    assert "Too many" in post_login(browser, bob.email).content.decode()


def test_a_forged_cookie_does_not_make_a_device_known(bob, clock):
    browser = browser_at()
    browser.cookies[settings.DEVICE_COOKIE_NAME] = f'{{"{bob.pk}": "mine"}}:1abcde:forged'
    attack(bob.email, MANY_ADDRESSES[:10], clock)
    assert "Too many" in post_login(browser, bob.email).content.decode()


def test_a_known_device_has_a_limit_of_its_own(bob, clock):
    browser = sign_in(bob)
    browser.post("/accounts/logout/")
    for _ in range(5):
        post_login(browser, bob.email, "wrong")
    assert "Too many" in post_login(browser, bob.email).content.decode()
    clock.shift(15 * 60)
    post_login(browser, bob.email)
    assert is_signed_in(browser)


def test_a_device_is_known_for_180_days(bob, clock):
    browser = sign_in(bob)
    browser.post("/accounts/logout/")
    cookie = browser.cookies[settings.DEVICE_COOKIE_NAME]
    assert cookie["max-age"] == 180 * 24 * 3600
    clock.shift(180 * 24 * 3600 + 1)
    attack(bob.email, MANY_ADDRESSES[:10], clock)
    later = browser_at()
    later.cookies[settings.DEVICE_COOKIE_NAME] = cookie.value
    assert "Too many" in post_login(later, bob.email).content.decode()


def test_fifty_failures_an_hour_stop_an_address_for_every_account(bob, clock):
    for number in range(50):
        if number % 5 == 0:
            clock.shift(60)  # an address may post thirty sign-ins a minute
        post_login(browser_at(OTHER_ADDRESS), f"guest{number}@example.com", "wrong")
    assert "Too many" in post_login(browser_at(OTHER_ADDRESS), bob.email).content.decode()
    browser = browser_at(HOME_ADDRESS)
    post_login(browser, bob.email)
    assert is_signed_in(browser)


# --- growing delay -------------------------------------------------------------------------------------


def test_the_delay_doubles_up_to_its_bound():
    delays = [compute_delay(failures) for failures in range(14)]
    assert delays == [0, 0, 0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert compute_delay(10**6) == MAX_DELAY


def test_the_delay_grows_with_failures_from_any_address_and_ends_an_hour_after_the_last(bob, clock):
    for address in MANY_ADDRESSES[:5]:
        fail(bob.email, address, 1)
    assert "Try again in 5 seconds" in post_login(browser_at(), bob.email).content.decode()
    clock.shift(5)
    fail(bob.email, HOME_ADDRESS, 1)
    assert "Try again in 10 seconds" in post_login(browser_at(), bob.email).content.decode()
    clock.shift(3601)
    browser = browser_at("192.0.2.99")
    post_login(browser, bob.email)
    assert is_signed_in(browser)


def test_during_the_wait_the_password_is_not_checked(bob, clock, monkeypatch):
    for address in MANY_ADDRESSES[:5]:
        fail(bob.email, address, 1)
    hashes = count_hashes(monkeypatch)
    post_login(browser_at(), bob.email)
    assert hashes == []


def test_an_account_that_does_not_exist_is_delayed_in_the_same_way(bob, clock):
    pages = []
    for email in (bob.email, "nobody@example.com"):
        for address in MANY_ADDRESSES[:5]:
            fail(email, address, 1)
        page = post_login(browser_at(), email).content.decode()
        pages.append("Try again in 5 seconds" in page)
    assert pages == [True, True]


def test_a_password_reset_ends_the_delay(bob, clock, mailoutbox):
    for address in MANY_ADDRESSES[:8]:
        fail(bob.email, address, 1)
    browser = browser_at()
    browser.post("/accounts/password/reset/", {"email": bob.email})
    link = next(part for part in mailoutbox[-1].body.split() if "/reset/key/" in part)
    path = browser.get("/" + link.partition("//")[2].partition("/")[2], follow=True).redirect_chain[-1][0]
    new = "another long secret"
    browser.post(path, {"password1": new, "password2": new})
    post_login(browser, bob.email, new)
    assert is_signed_in(browser)


@pytest.mark.planted
def test_counting_by_account_alone_is_detected(bob, clock, monkeypatch):
    """The fault of the review: five wrong passwords of anyone stop the account."""
    monkeypatch.setattr(account_adapter, "build_counter_key", lambda login, client: login)
    monkeypatch.setattr(known_devices, "read_device_cookie", lambda request: {})
    browser = sign_in(bob)
    browser.post("/accounts/logout/")
    fail(bob.email)
    post_login(browser, bob.email)
    assert not is_signed_in(browser)


# --- sign-up and Redis ---------------------------------------------------------------------------------


def test_sign_up_hashes_once_for_known_and_for_new_addresses(bob, monkeypatch, mailoutbox):
    hashes = count_hashes(monkeypatch)
    counts = {}
    for email in (bob.email, "new@example.com"):
        data = {"email": email, "password1": "a long enough secret", "password2": "a long enough secret"}
        answer = browser_at().post("/accounts/signup/", data)
        assert answer["Location"] == "/accounts/confirm-email/"
        counts[email], hashes[:] = list(hashes), []
    assert counts == {bob.email: ["encode"], "new@example.com": ["encode"]}
    assert User.objects.filter(email=bob.email).count() == 1
    assert len(mailoutbox) == 2


def test_sign_in_hashes_once_and_writes_the_same_for_known_and_unknown_accounts(bob, monkeypatch):
    hashes = count_hashes(monkeypatch)
    pages = set()
    for email in (bob.email, "nobody@example.com"):
        page = post_login(browser_at(), email, "wrong").content.decode()
        pages.add(CSRF.sub("", page.replace(email, "")))
        assert len(hashes) == 1
        hashes.clear()
    assert len(pages) == 1
    assert SecurityEvent.objects.filter(kind="sign_in_failed", user=bob).count() == 1
    assert SecurityEvent.objects.filter(kind="sign_in_failed", user=None).count() == 1


def test_a_reset_gives_the_same_answer_and_one_email_for_known_and_unknown_addresses(
    bob, monkeypatch, mailoutbox
):
    hashes = count_hashes(monkeypatch)
    answers = []
    for email in (bob.email, "nobody@example.com"):
        answer = browser_at().post("/accounts/password/reset/", {"email": email})
        answers.append((answer.status_code, answer["Location"]))
    assert answers == [(302, "/accounts/password/reset/done/")] * 2
    assert [message.to for message in mailoutbox] == [[bob.email], ["nobody@example.com"]]
    assert hashes == []


def test_the_counters_do_not_need_redis(bob, clock, settings):
    settings.REDIS_URL = "unix:///nowhere/at.all"
    fail(bob.email, OTHER_ADDRESS)
    assert "Too many" in post_login(browser_at(OTHER_ADDRESS), bob.email).content.decode()
