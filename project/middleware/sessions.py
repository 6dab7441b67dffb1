"""Middleware for session expiry (after twelve hours, or one hour without use) and for the login redirect."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse

STARTED_AT_KEY = "started_at"
SEEN_AT_KEY = "seen_at"


class SessionLimitsMiddleware:
    """Flush expired sessions. This runs before authentication, which then treats the user as anonymous."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Without the cookie no user is signed in. Checking it first saves API requests a session query.
        if settings.SESSION_COOKIE_NAME in request.COOKIES and SESSION_KEY in request.session:
            enforce_session_limits(request.session, int(time.time()), is_use=not is_polling_request(request))
        return self.get_response(request)


def is_polling_request(request: HttpRequest) -> bool:
    """Return whether an open page sent the request by itself (htmx). That does not prolong the session."""
    return request.method == "GET" and request.headers.get("HX-Request") == "true"


def enforce_session_limits(session: SessionBase, now: int, *, is_use: bool = True) -> None:
    if is_session_expired(session, now):
        session.flush()
        return
    if STARTED_AT_KEY not in session:
        session[STARTED_AT_KEY] = now
    # The time of the last use is stored at most every SESSION_TOUCH_SECONDS, so that not every page view
    # writes to the database.
    if is_use and now - session.get(SEEN_AT_KEY, 0) >= settings.SESSION_TOUCH_SECONDS:
        session[SEEN_AT_KEY] = now


def is_session_expired(session: SessionBase, now: int) -> bool:
    too_old = now - session.get(STARTED_AT_KEY, now) >= settings.SESSION_COOKIE_AGE
    too_quiet = now - session.get(SEEN_AT_KEY, now) >= settings.SESSION_IDLE_SECONDS
    return bool(too_old or too_quiet)


class LoginMiddleware(LoginRequiredMiddleware):
    """Redirect visitors who are not signed in to the login page.

    An htmx request would insert the login page into the open page. So a fragment that is only read makes the
    browser reload the page, and a form gets 401: the page then keeps what was typed and offers to sign in.
    """

    def handle_no_permission(  # type: ignore[override]  # wider: Django accepts any response
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponse:
        if request.headers.get("HX-Request") == "true":
            if request.method not in {"GET", "HEAD"}:
                return HttpResponse(status=401)
            return HttpResponse(status=204, headers={"HX-Refresh": "true"})
        response: HttpResponse = super().handle_no_permission(request, view_func)
        return response
