"""One log line per request, an id for each, and that id in the answer."""

from time import perf_counter
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware

from project.log_redaction import redact_path
from project.metrics.collectors import get_route_family


class RequestLogMiddleware(RequestMiddleware):
    """The id is always ours: one taken from a caller could forge somebody else's trail."""

    def prepare(self, request: HttpRequest) -> None:
        super().prepare(request)
        request.request_id = structlog.contextvars.get_contextvars()["request_id"]  # type: ignore[attr-defined]
        request.began = perf_counter()  # type: ignore[attr-defined]

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        response["X-Request-ID"] = request.request_id  # type: ignore[attr-defined]
        bind_request_details(request)
        super().handle_response(request, response)

    def process_got_request_exception(self, sender: type[Any], request: HttpRequest, **more: Any) -> None:
        """A request that failed has its one line here."""
        bind_request_details(request)
        super().process_got_request_exception(sender, request, **more)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {redact_path(request.path)}"


def bind_request_details(request: HttpRequest) -> None:
    """How long it took, and which part of the house it led to; the line that follows says both."""
    began = getattr(request, "began", None)
    if began is not None:
        took = round((perf_counter() - began) * 1_000, 1)
        structlog.contextvars.bind_contextvars(
            family=get_route_family(request.resolver_match), duration_ms=took
        )
