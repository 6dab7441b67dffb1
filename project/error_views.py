"""Error handlers (400, 404, 500): problem details for API clients, pages for browsers."""

import sys
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults

from personas.api.exception_handler import (
    NOT_FOUND_PROBLEM,
    SERVER_ERROR_PROBLEM,
    exception_to_problem,
)
from personas.api.problems import Problem
from personas.api.views import problem_response

# Paths that only programs request, `//api/v1/…` and `OPTIONS *` included.
API_PREFIXES = ("api/", ".well-known/", "*")


def is_for_programs(request: HttpRequest) -> bool:
    return request.path_info.lstrip("/").startswith(API_PREFIXES)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_for_programs(request):
        return problem_response(Problem(400, "bad_request", "The request is malformed."), request)
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_for_programs(request):
        return problem_response(NOT_FOUND_PROBLEM, request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    """Return 503 with Retry-After if the database or the mail server is not available, else 500."""
    error = sys.exception()
    problem = exception_to_problem(error) if error is not None else SERVER_ERROR_PROBLEM
    problem = problem if problem.status == 503 else SERVER_ERROR_PROBLEM
    if is_for_programs(request):
        return problem_response(problem, request)
    if problem.status == 503:
        # Rendered without the request: context processors would query the database, which is not available.
        page = render_to_string("503.html", {"code": problem.code})
        return HttpResponse(page, status=503, headers=dict(problem.headers))
    return defaults.server_error(request)
