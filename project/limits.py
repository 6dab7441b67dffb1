"""Refuse a request body above the limit before anybody reads it."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

API_PREFIX = "/api/"


class BodyLimitMiddleware:
    """Django's own limit spares uploaded files, and answers a JSON client with an HTML page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # A body without a stated length is read as empty by Django, so the header is enough.
        if body_length(request) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return too_large(request)
        return self.get_response(request)


def body_length(request: HttpRequest) -> int:
    stated = request.META.get("CONTENT_LENGTH") or "0"
    return int(stated) if stated.isascii() and stated.isdigit() else 0


def too_large(request: HttpRequest) -> HttpResponse:
    detail = f"The body may have at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes."
    if not request.path_info.startswith(API_PREFIX):
        return HttpResponse(detail, status=413, content_type="text/plain; charset=utf-8")
    problem = {"type": "about:blank", "title": "Body too large", "status": 413, "detail": detail}
    problem |= {"code": "body_too_large", "request_id": getattr(request, "request_id", "")}
    return JsonResponse(problem, status=413, content_type="application/problem+json")
