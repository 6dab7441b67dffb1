"""WSGI fast path: handle prompt fetches without Django's middleware, and pass other requests on to Django."""

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
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from core.spans import load_span_tools
from project.metrics.collectors import FETCH_FAMILY as FETCHES
from project.metrics.collectors import count_request
from prompts.serving.fetch_api import FetchTarget, Headers, RawResponse, handle_fetch

log = structlog.get_logger(__name__)

WsgiEnviron = dict[str, Any]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[WsgiEnviron, StartResponse], Iterable[bytes]]
# Must match the URL pattern in prompts.serving.fetch_api.
FETCH_PATH = re.compile(r"/api/v1/agents/([-a-zA-Z0-9_]+)/channels/([-a-zA-Z0-9_]+)/prompt(\.md)?")
FETCH_METHODS, NO_BODY = frozenset({"GET", "HEAD"}), frozenset({"", "0"})
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
HEADER_MIDDLEWARE = (SecurityMiddleware, CSPMiddleware, XFrameOptionsMiddleware)


class FetchFastPath:
    """WSGI application that handles prompt fetches and passes other requests on to Django's application.

    A fetch needs no session, form or page, so it does not need Django's middleware.
    """

    def __init__(self, application: WsgiApplication) -> None:
        self.application = application
        self.security_headers = build_security_headers()
        if settings.DRAMATIS_TRACING:
            # Load the packages now: importing them later would delay the first fetch by a second.
            load_span_tools()

    def __call__(self, environ: WsgiEnviron, start: StartResponse) -> Iterable[bytes]:
        # A request with a body is left to Django, which limits its size.
        if environ["REQUEST_METHOD"] in FETCH_METHODS and environ.get("CONTENT_LENGTH", "") in NO_BODY:
            match = FETCH_PATH.fullmatch(environ["PATH_INFO"])
            if match and is_accepted_request(environ):
                return self.fetch(environ, FetchTarget(match[1], match[2], bool(match[3])), start)
        return self.application(environ, start)

    def fetch(self, environ: WsgiEnviron, target: FetchTarget, start: StartResponse) -> Iterable[bytes]:
        request_id, started_at = generate_request_id(), perf_counter()
        try:
            response = handle_fetch(
                environ["REQUEST_METHOD"], target, environ.get("QUERY_STRING", ""), environ, request_id
            )
        finally:
            release_connection()
        seconds = perf_counter() - started_at
        count_request(FETCHES, response.status, seconds)
        if response.status >= 400 or settings.DRAMATIS_LOG_FETCHES:
            log_fetch(response, environ, request_id, seconds)
        start(STATUS_LINES[response.status], response.headers + self.security_headers)
        return (response.body,)


def generate_request_id() -> str:
    """Return a random UUID, as RequestLogMiddleware does for other requests.

    The id must be unique but not secret, so the slower system call for secure random numbers is avoided.
    """
    return str(UUID(int=getrandbits(128), version=4))


def release_connection() -> None:
    """Return the connection to the pool, as Django does at the end of a request."""
    database = connections[DEFAULT_DB_ALIAS]
    if not database.in_atomic_block:
        database.close_if_unusable_or_obsolete()


def log_fetch(response: RawResponse, environ: WsgiEnviron, request_id: str, seconds: float) -> None:
    """Log a fetch in the format of the request log.

    By default only failed fetches are logged, because the ledger has a row for every served prompt.
    """
    log.info(
        "request_finished",
        code=response.status,
        request=f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}",
        request_id=request_id,
        family=FETCHES,
        duration_ms=round(seconds * 1_000, 1),
    )


def is_accepted_request(environ: WsgiEnviron) -> bool:
    """Return whether the host is allowed and, if TLS is required, the scheme is https.

    All other requests are passed on to Django, which rejects or redirects them.
    """
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
            header: str = environ[name]
            return header.split(",", 1)[0].strip() == value
    return bool(environ.get("wsgi.url_scheme") == "https")


class MinimalRequest(HttpRequest):
    """A request with only the parts that the classes in HEADER_MIDDLEWARE read."""

    def _get_scheme(self) -> str:
        return "https" if settings.TLS else "http"


def build_security_headers() -> Headers:
    """Return the headers that HEADER_MIDDLEWARE adds to every response. Called once, at start."""
    request, response = MinimalRequest(), HttpResponse()
    for middleware in HEADER_MIDDLEWARE:
        middleware(lambda _: response).process_response(request, response)
    return [pair for pair in response.items() if pair[0] != "Content-Type"]
