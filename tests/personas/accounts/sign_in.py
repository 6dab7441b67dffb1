"""Sign in through the pages, with a password and a second factor, from any address."""

import time

import time_machine
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.core.cache import cache
from django.test import Client

from personas.models import User
from tests.factories import PASSWORD

LOGIN = "/accounts/login/"
HOME_ADDRESS, OTHER_ADDRESS = "192.0.2.10", "198.51.100.20"


def get_totp_code(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))


def give_password(user: User, password: str = PASSWORD) -> User:
    user.set_password(password)
    user.save(update_fields=["password"])
    return user


def give_totp(user: User) -> str:
    """Add an authenticator app to the account, and return its secret."""
    secret: str = generate_totp_secret()
    TOTP.activate(user, secret)
    return secret


def browser_at(address: str = HOME_ADDRESS) -> Client:
    return Client(REMOTE_ADDR=address)


def post_login(client: Client, email: str, password: str = PASSWORD):
    return client.post(LOGIN, {"login": email, "password": password})


def is_signed_in(client: Client) -> bool:
    return client.get("/profile/").status_code == 200


def enter_code(client: Client, secret: str, path: str = "/accounts/2fa/authenticate/"):
    """Post the current code. Codes count once, so the note that this one was used is deleted first."""
    cache.clear()
    # The clock stands still, so that the code is valid when it arrives.
    with time_machine.travel(time.time(), tick=False):
        return client.post(path, {"code": get_totp_code(secret)})


def sign_in(user: User, *, address: str = HOME_ADDRESS, secret: str = "") -> Client:
    """Return a browser that signed in with the password, and with the code if a TOTP secret is given."""
    client = browser_at(address)
    post_login(client, user.email)
    if secret:
        enter_code(client, secret)
    assert is_signed_in(client)
    return client
