"""Errors outside of any view: problems for programs, pages for people."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views import defaults

from personas.api.problems import Problem
from personas.api.refusals import FAULT, NOT_FOUND
from personas.api.views import refused

API = "/api/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(API):
        return refused(Problem(400, "bad_request", "The request cannot be read."), request)
    return defaults.bad_request(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path_info.startswith(API):
        return refused(NOT_FOUND, request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    if request.path_info.startswith(API):
        return refused(FAULT, request)
    return defaults.server_error(request)
