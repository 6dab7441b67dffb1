"""The way in for fetches, ahead of Django's middleware; everything else is passed on untouched."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from http import HTTPStatus
from random import getrandbits
from time import perf_counter
from typing import Any
from uuid import UUID

import structlog
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from project.metrics.collectors import FETCH_FAMILY as FETCHES
from project.metrics.collectors import count_request
from prompts.serving.fetch_api import Headers, RawResponse, handle_fetch

log = structlog.get_logger(__name__)

WsgiEnviron = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[WsgiEnviron, StartResponse], Iterable[bytes]]
# The same words as the address in prompts.serving.fetch_api takes.
FETCH_PATH = re.compile(r"/api/v1/agents/([-a-zA-Z0-9_]+)/prompt")
FETCH_METHODS = frozenset({"GET", "HEAD"})
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
HEADER_MIDDLEWARE = (SecurityMiddleware, CSPMiddleware, XFrameOptionsMiddleware)


class FetchFastPath:
    """Around Django's own application. A fetch needs no session, form or page, and so no middleware."""

    def __init__(self, application: WsgiApplication) -> None:
        self.application = application
        self.guards = build_security_headers()

    def __call__(self, environ: WsgiEnviron, start: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in FETCH_METHODS:
            found = FETCH_PATH.fullmatch(environ["PATH_INFO"])
            if found and is_accepted_request(environ):
                return self.fetch(environ, found[1], start)
        return self.application(environ, start)

    def fetch(self, environ: WsgiEnviron, agent: str, start: StartResponse) -> Iterable[bytes]:
        request_id, began = generate_request_id(), perf_counter()
        try:
            reply = handle_fetch(
                environ["REQUEST_METHOD"], agent, environ.get("QUERY_STRING", ""), environ, request_id
            )
        finally:
            release_connection()
        seconds = perf_counter() - began
        count_request(FETCHES, reply.status, seconds)
        if reply.status >= 400 or settings.DRAMATIS_LOG_FETCHES:
            log_fetch(reply, environ, request_id, seconds)
        start(STATUS_LINES[reply.status], reply.headers + self.guards)
        return (reply.body,)


def generate_request_id() -> str:
    """As the request log makes them. They must differ, and are no secret: so the system is not asked."""
    return str(UUID(int=getrandbits(128), version=4))


def release_connection() -> None:
    """What Django does at the end of a request: whoever had to ask leaves the place to others."""
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


def log_fetch(reply: RawResponse, environ: WsgiEnviron, request_id: str, seconds: float) -> None:
    """As the request log says it. What was handed out stands in the ledger with its id, and needs no line."""
    words = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
    log.info(
        "request_finished",
        code=reply.status,
        request=words,
        request_id=request_id,
        family=FETCHES,
        duration_ms=round(seconds * 1_000, 1),
    )


def is_accepted_request(environ: WsgiEnviron) -> bool:
    """By the right name and the right scheme; what is to be done with others is Django's business."""
    return is_allowed_host(environ.get("HTTP_HOST", "")) and (
        not settings.SECURE_SSL_REDIRECT or is_secure_request(environ)
    )


@lru_cache(maxsize=200)
def is_allowed_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def is_secure_request(environ: WsgiEnviron) -> bool:
    if settings.SECURE_PROXY_SSL_HEADER:
        name, value = settings.SECURE_PROXY_SSL_HEADER
        if name in environ:
            said: str = environ[name]
            return said.split(",", 1)[0].strip() == value
    return bool(environ.get("wsgi.url_scheme") == "https")


class MinimalRequest(HttpRequest):
    """As much of a request as the guards look at."""

    def _get_scheme(self) -> str:
        return "https" if settings.TLS else "http"


def build_security_headers() -> Headers:
    """What Django's own middleware adds to every answer, asked once."""
    request, response = MinimalRequest(), HttpResponse()
    for guard in HEADER_MIDDLEWARE:
        guard(lambda _: response).process_response(request, response)
    return [pair for pair in response.items() if pair[0] != "Content-Type"]
