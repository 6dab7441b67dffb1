"""End a log-in after twelve hours, or after one hour without use."""

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse

STARTED = "started_at"
SEEN = "seen_at"


class SessionLimitsMiddleware:
    """Stands before authentication, so an ended session is nobody's by the time a view asks."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Without the cookie there is no log-in, so programs with a key cost no look at the session table.
        if settings.SESSION_COOKIE_NAME in request.COOKIES and SESSION_KEY in request.session:
            limit(request.session, int(time.time()))
        return self.get_response(request)


def limit(session: SessionBase, now: int) -> None:
    if ended(session, now):
        session.flush()
        return
    if STARTED not in session:
        session[STARTED] = now
    # A write per request would make every page view a database transaction.
    if now - session.get(SEEN, 0) >= settings.SESSION_TOUCH_SECONDS:
        session[SEEN] = now


def ended(session: SessionBase, now: int) -> bool:
    too_old = now - session.get(STARTED, now) >= settings.SESSION_COOKIE_AGE
    too_quiet = now - session.get(SEEN, now) >= settings.SESSION_IDLE_SECONDS
    return bool(too_old or too_quiet)
