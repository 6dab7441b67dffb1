"""What both clients share of httpx: how it is set up, and the way into and out of its types."""

import ssl
from functools import cache
from typing import Any

import httpx

from dramatis_client.answers import Answer
from dramatis_client.core import Core
from dramatis_client.requests import Request


@cache
def trusted() -> ssl.SSLContext:
    """Read from disk once per process: that takes longer than most calls."""
    return httpx.create_ssl_context()


def settings(core: Core, timeout: float) -> dict[str, Any]:
    """Redirects are not followed: the key is for this server alone."""
    return {
        "base_url": core.url,
        "headers": core.headers,
        "timeout": timeout,
        "verify": trusted(),
        "follow_redirects": False,
    }


def outgoing(http: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
    return http.build_request(
        request.method, request.path, params=request.params, headers=request.headers, content=request.content
    )


def incoming(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)
