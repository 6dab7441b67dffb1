"""Fetch prompts over HTTP as a bot does, through the WSGI fast path and through Django."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.test import Client

from project.fetch_fast_path import FetchFastPath
from tests.prompts.serving.serving_stage import Stage

ADDRESS = "/api/v1/agents/pilot/channels/deck/prompt"


@dataclass
class FetchResponse:
    """A response of the fast path or of Django."""

    status: int
    headers: dict[str, str]
    body: bytes
    was_passed_on: bool = False


def fetch_by_fast_path(
    method: str = "GET", path: str = ADDRESS, query: str = "", **cgi_headers: Any
) -> FetchResponse:
    """Fetch through the fast path; `cgi_headers` are header names as in CGI, without HTTP_."""
    started: dict[str, Any] = {}
    passed: list[str] = []

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        started["status"], started["headers"] = int(status[:3]), dict(headers)
        assert len(started["headers"]) == len(headers), "a header is sent twice"

    def next_app(environ: dict[str, Any], start: Any) -> list[bytes]:
        passed.append(environ["PATH_INFO"])
        start("204 No Content", [])
        return [b""]

    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    environ |= {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "wsgi.input": BytesIO()}
    environ |= {"HTTP_HOST": "localhost", **{f"HTTP_{name}": value for name, value in cgi_headers.items()}}
    body = b"".join(FetchFastPath(next_app)(environ, start))
    return FetchResponse(started["status"], started["headers"], body, bool(passed))


def fetch_by_django(
    method: str = "GET", path: str = ADDRESS, query: str = "", **cgi_headers: Any
) -> FetchResponse:
    headers = {f"HTTP_{name}": value for name, value in cgi_headers.items()}
    answer = Client().generic(method, f"{path}?{query}" if query else path, HTTP_HOST="localhost", **headers)
    sent_headers = dict(answer.headers)
    # Django adds Cookie because the request log reads the session; the response does not depend on it.
    sent_headers["Vary"] = sent_headers["Vary"].removesuffix(", Cookie")
    if answer.status_code == 304:
        # Django's middleware adds a length although there is no body.
        sent_headers.pop("Content-Length", None)
    content = answer.getvalue() if answer.streaming else answer.content
    return FetchResponse(answer.status_code, sent_headers, content)


def bearer(secret: str) -> str:
    return f"Bearer {secret}"


ENTRY_POINTS = [fetch_by_fast_path, fetch_by_django]
both_entry_points = pytest.mark.parametrize("entry_point", ENTRY_POINTS, ids=["fast", "django"])


def send_fetch(entry_point: Callable[..., FetchResponse], stage: Stage, **options: Any) -> FetchResponse:
    options.setdefault("AUTHORIZATION", bearer(stage.secret))
    return entry_point(**options)


def problem_json(response: FetchResponse) -> Any:
    assert response.headers["Content-Type"] == "application/problem+json"
    data = json.loads(response.body)
    assert data["status"] == response.status
    assert data["request_id"] == response.headers["X-Request-ID"]
    return data
