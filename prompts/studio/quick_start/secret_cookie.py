"""Carry the secret of a new API key over one redirect, to the page that shows it once.

The secret is in a cookie, encrypted with a key that is generated for it and stored in the session. It is
neither in a URL nor in the database. The first request of the page removes both.
"""

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.debug import sensitive_variables

SESSION_KEY = "new_key"
MAX_AGE_SECONDS = 60


def get_cookie_name() -> str:
    """Return the name of the cookie. With TLS, browsers bind it to this host."""
    return "__Host-dramatis-new-key" if settings.SESSION_COOKIE_SECURE else "dramatis-new-key"


@sensitive_variables("secret", "cipher_key")
def set_secret_cookie(request: HttpRequest, response: HttpResponse, secret: str, path: str) -> None:
    """Let the page at `path` show the secret, once and within a minute."""
    cipher_key = Fernet.generate_key()
    request.session[SESSION_KEY] = [path, cipher_key.decode()]
    response.set_cookie(
        get_cookie_name(),
        Fernet(cipher_key).encrypt(secret.encode()).decode(),
        max_age=MAX_AGE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )


@sensitive_variables("cipher_key")
def take_secret(request: HttpRequest) -> str:
    """Return the secret that this page may show. A second call returns an empty string."""
    path, cipher_key = request.session.get(SESSION_KEY) or ("", "")
    if path != request.path:
        return ""
    del request.session[SESSION_KEY]
    try:
        token = request.COOKIES.get(get_cookie_name(), "")
        return Fernet(cipher_key).decrypt(token, ttl=MAX_AGE_SECONDS).decode()
    except InvalidToken:
        return ""


def delete_secret_cookie(request: HttpRequest, response: HttpResponse) -> None:
    if get_cookie_name() in request.COOKIES:
        response.delete_cookie(get_cookie_name(), samesite="Strict")
