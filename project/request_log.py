"""One log line per request, an id for each, and that id in the answer."""

import structlog
from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware

from project.redaction import clean_path


class RequestLogMiddleware(RequestMiddleware):
    """The id is always ours: one taken from a caller could forge somebody else's trail."""

    def prepare(self, request: HttpRequest) -> None:
        super().prepare(request)
        request.request_id = structlog.contextvars.get_contextvars()["request_id"]  # type: ignore[attr-defined]

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        response["X-Request-ID"] = request.request_id  # type: ignore[attr-defined]
        super().handle_response(request, response)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {clean_path(request.path)}"
