"""Middleware that rejects a request with a body above the limit (413) before the body is read."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from core.body_size import get_body_limit, get_content_length

API_PREFIX = "/api/"


class BodyLimitMiddleware:
    """Enforce the body limit of each view.

    Django's own limit does not apply to uploaded files, and its error is an HTML page even for API clients.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Django treats a body without Content-Length as empty, so checking the header is enough.
        if has_large_body(request) and get_content_length(request) > (
            limit := get_body_limit(request.path_info)
        ):
            return build_too_large_response(request, limit)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        """Reject a body above the default limit if the user is not signed in, whatever the view allows.

        This must happen here, because the body is read before the view checks the login.
        """
        if has_large_body(request) and not request.user.is_authenticated:
            return build_too_large_response(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        return None


def has_large_body(request: HttpRequest) -> bool:
    return get_content_length(request) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE


def build_too_large_response(request: HttpRequest, limit: int) -> HttpResponse:
    detail = f"The body may have at most {limit} bytes."
    if not request.path_info.startswith(API_PREFIX):
        return HttpResponse(detail, status=413, content_type="text/plain; charset=utf-8")
    problem = {"type": "about:blank", "title": "Body too large", "status": 413, "detail": detail}
    problem |= {"code": "body_too_large", "request_id": getattr(request, "request_id", "")}
    return JsonResponse(problem, status=413, content_type="application/problem+json")
