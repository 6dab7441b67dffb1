"""Request log: one line per request, with a request id that is also sent in the response."""

from time import perf_counter
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware

from project.logs.redaction import redact_path
from project.metrics.collectors import get_route_family


class RequestLogMiddleware(RequestMiddleware):
    """Log each request with a generated request id.

    An id that the client sends is ignored, because it could be the id of another request.
    """

    def prepare(self, request: HttpRequest) -> None:
        super().prepare(request)
        request.request_id = structlog.contextvars.get_contextvars()["request_id"]  # type: ignore[attr-defined]
        request.started_at = perf_counter()  # type: ignore[attr-defined]

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        response["X-Request-ID"] = request.request_id  # type: ignore[attr-defined]
        bind_request_details(request)
        super().handle_response(request, response)

    def process_got_request_exception(self, sender: type[Any], request: HttpRequest, **more: Any) -> None:
        """Log a request that raised an exception."""
        bind_request_details(request)
        super().process_got_request_exception(sender, request, **more)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {redact_path(request.path)}"


def bind_request_details(request: HttpRequest) -> None:
    """Add the duration and the route family to the log line of this request."""
    started_at = getattr(request, "started_at", None)
    if started_at is not None:
        duration_ms = round((perf_counter() - started_at) * 1_000, 1)
        structlog.contextvars.bind_contextvars(
            family=get_route_family(request.resolver_match), duration_ms=duration_ms
        )
