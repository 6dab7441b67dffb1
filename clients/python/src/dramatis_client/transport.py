"""httpx options and conversions shared by both clients."""

import ssl
from functools import cache
from typing import Any

import httpx

from dramatis_client.core import ClientCore
from dramatis_client.io import Send
from dramatis_client.responses import Response
from dramatis_client.spans import build_trace_headers


@cache
def load_ssl_context() -> ssl.SSLContext:
    """Load the CA certificates once per process: loading takes longer than most calls."""
    return httpx.create_ssl_context()


def build_http_options(core: ClientCore) -> dict[str, Any]:
    """Return the options of the httpx client. Redirects are off: the API key is sent to this server only."""
    return {
        "base_url": core.url,
        "headers": core.headers,
        "timeout": core.timeout,
        "verify": load_ssl_context(),
        "follow_redirects": False,
    }


def to_httpx_request(http: httpx.Client | httpx.AsyncClient, operation: Send) -> httpx.Request:
    request, timeout = operation.request, operation.timeout
    return http.build_request(
        request.method,
        request.path,
        params=request.params,
        headers={**request.headers, **build_trace_headers()},
        content=request.content,
        timeout=httpx.USE_CLIENT_DEFAULT if timeout is None else timeout,
    )


def from_httpx_response(response: httpx.Response) -> Response:
    return Response(response.status_code, response.headers, response.content)
