"""Known devices: a signed cookie that a browser gets when someone signs in with it.

It does not sign anyone in. Failed sign-ins are counted separately for a known device, so that failures of
others do not delay its user.
"""

import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from personas.models import User

DEVICE_SALT = "personas.accounts.device"
MAX_ACCOUNTS_PER_DEVICE = 10


def read_device_cookie(request: HttpRequest) -> dict[str, str]:
    """Return the device ids in the cookie by user id; empty without a cookie that we signed."""
    cookie = request.COOKIES.get(settings.DEVICE_COOKIE_NAME, "")
    if not cookie:
        return {}
    try:
        devices = signing.loads(cookie, salt=DEVICE_SALT, max_age=settings.DEVICE_COOKIE_AGE)
    except signing.BadSignature:
        return {}
    return dict(devices)


def find_device_id(request: HttpRequest, user: User | None) -> str:
    """Return the id of this browser if the user has signed in with it before, or an empty string."""
    return "" if user is None else read_device_cookie(request).get(str(user.pk), "")


def remember_device(request: HttpRequest, response: HttpResponseBase, user: User) -> None:
    """Set the cookie that makes this browser a known device of the user."""
    devices = read_device_cookie(request)
    device_id = devices.pop(str(user.pk), "") or secrets.token_urlsafe(12)
    devices = dict([*devices.items()][1 - MAX_ACCOUNTS_PER_DEVICE :])
    response.set_cookie(
        settings.DEVICE_COOKIE_NAME,
        signing.dumps({**devices, str(user.pk): device_id}, salt=DEVICE_SALT),
        max_age=settings.DEVICE_COOKIE_AGE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
