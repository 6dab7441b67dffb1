"""Middleware that rejects a request with a body above the limit (413) before the body is read.

It also builds the response to a body that could not be read (408, 503).
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from core.body_size import get_body_limit, get_content_length
from core.request_body import get_limited_body, mark_body_authenticated
from personas.api.exception_handler import body_too_large_problem, exception_to_problem
from personas.api.problems import Problem
from personas.api.views import problem_response

API_PREFIX = "/api/"


class BodyLimitMiddleware:
    """Enforce the body limit of each view.

    Django's own limit does not apply to uploaded files, and its error is an HTML page even for API clients.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if has_large_body(request) and get_content_length(request) > (
            limit := get_body_limit(request.path_info)
        ):
            return build_too_large_response(request, limit)
        read_body_without_length(request)
        response = self.get_response(request)
        body = get_limited_body(request)
        if body is not None and body.error is not None:
            return build_refusal(request, exception_to_problem(body.error), body.error)
        return response

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        """Reject a body above the default limit if the user is not signed in, whatever the view allows.

        This must happen here, because the body is read before the view checks the login.
        """
        if not get_content_length(request):
            return None
        if request.user.is_authenticated:
            mark_body_authenticated(request)
        elif has_large_body(request):
            return build_too_large_response(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        return None


def read_body_without_length(request: HttpRequest) -> None:
    """Let Django read the body of an API request without Content-Length, such as a chunked one.

    Django's stream ends after as many bytes as Content-Length announces, so without the header it is empty.
    That is right for forms, because browsers always send the header. `request.body` reads one byte more than
    the limit, and raises RequestDataTooBig if it gets it.
    """
    body = get_limited_body(request)
    if body is not None and not body.has_length and request.path_info.startswith(API_PREFIX):
        request._stream = body  # type: ignore[assignment]  # it has what Django needs of a stream


def has_large_body(request: HttpRequest) -> bool:
    return get_content_length(request) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE


def build_too_large_response(request: HttpRequest, limit: int) -> HttpResponse:
    return build_refusal(request, body_too_large_problem(limit))


def build_refusal(request: HttpRequest, problem: Problem, error: Exception | None = None) -> HttpResponse:
    """Return the problem for an API client, and its text for a browser."""
    if request.path_info.startswith(API_PREFIX):
        return problem_response(problem, request, error)
    return HttpResponse(
        problem.detail,
        status=problem.status,
        content_type="text/plain; charset=utf-8",
        headers=dict(problem.headers),
    )
