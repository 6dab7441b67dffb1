"""End a log-in after twelve hours, or after one hour without use; and lead visitors to a new one."""

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
    """Stands before authentication, so an ended session is nobody's by the time a view asks."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Without the cookie there is no log-in, so programs with a key cost no look at the session table.
        if settings.SESSION_COOKIE_NAME in request.COOKIES and SESSION_KEY in request.session:
            enforce_session_limits(request.session, int(time.time()), is_use=not is_polling_request(request))
        return self.get_response(request)


def is_polling_request(request: HttpRequest) -> bool:
    """An open page that asks for news by itself: nobody need be sitting there."""
    return request.method == "GET" and request.headers.get("HX-Request") == "true"


def enforce_session_limits(session: SessionBase, now: int, *, is_use: bool = True) -> None:
    if is_session_expired(session, now):
        session.flush()
        return
    if STARTED_AT_KEY not in session:
        session[STARTED_AT_KEY] = now
    # A write per request would make every page view a database transaction.
    if is_use and now - session.get(SEEN_AT_KEY, 0) >= settings.SESSION_TOUCH_SECONDS:
        session[SEEN_AT_KEY] = now


def is_session_expired(session: SessionBase, now: int) -> bool:
    too_old = now - session.get(STARTED_AT_KEY, now) >= settings.SESSION_COOKIE_AGE
    too_quiet = now - session.get(SEEN_AT_KEY, now) >= settings.SESSION_IDLE_SECONDS
    return bool(too_old or too_quiet)


class LoginMiddleware(LoginRequiredMiddleware):
    """Sends visitors to the log-in; a page that polls is told to load anew, and so to go there as a whole."""

    def handle_no_permission(  # type: ignore[override]  # wider: any answer will do to Django
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponse:
        if request.headers.get("HX-Request") == "true":
            return HttpResponse(status=204, headers={"HX-Refresh": "true"})
        answer: HttpResponse = super().handle_no_permission(request, view_func)
        return answer
