"""Conversion of exceptions to problem responses (RFC 9457)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions as drf

from core.db.disk_full import is_disk_full
from core.request_body import BodyReadError
from core.request_deadline import RequestTimeout
from personas.api.problems import FieldError, Problem, ProblemError, json_pointer
from personas.errors import DomainError, EditConflict, InvalidInput

AUTH_CHALLENGE_HEADERS = {"WWW-Authenticate": 'Bearer realm="Dramatis"'}
RETRY_AFTER_HEADERS = {"Retry-After": "2"}
# HTTP status by the code of a domain error. Codes that are not listed have the status 409.
DOMAIN_ERROR_STATUSES = {
    "invalid_key": 401,
    "out_of_scope": 403,
    "not_allowed": 403,
    "not_found": 404,
    "unknown_ledger_entry": 404,
    "no_version": 404,
    "no_version_at_time": 404,
    "erased": 410,
    "expired": 410,
    "unknown_label": 404,
    "invalid_bundle": 422,
    "call_quota_exceeded": 429,
    "email_not_sent": 503,
    "unavailable": 503,
}
HEADERS_BY_STATUS: Mapping[int, Mapping[str, str]] = {401: AUTH_CHALLENGE_HEADERS, 503: RETRY_AFTER_HEADERS}
SERVER_ERROR_PROBLEM = Problem(
    500, "server_error", "This is a fault of the server. It has been noted under the request id."
)
TIMEOUT_PROBLEM = Problem(
    503,
    "unavailable",
    "The request took too long and was ended; nothing was changed. Try again.",
    headers=RETRY_AFTER_HEADERS,
)
STORAGE_FULL_PROBLEM = Problem(
    503,
    "storage_full",
    "The disk of the database is full; nothing was changed. Try again when the operator has made room.",
    headers={"Retry-After": "30"},
)
NOT_FOUND_PROBLEM = Problem(404, "not_found", "There is nothing here under this name.")


def exception_to_problem(error: BaseException) -> Problem:
    """Convert an exception to a problem. An unexpected exception becomes a 500 that reveals no details."""
    for kind, build_problem in PROBLEM_BUILDERS.items():
        if isinstance(error, kind):
            return build_problem(error)
    return SERVER_ERROR_PROBLEM


def database_error_to_problem(error: OperationalError | InterfaceError) -> Problem:
    return STORAGE_FULL_PROBLEM if is_disk_full(error) else unavailable_problem()


def body_too_large_problem(limit: int) -> Problem:
    return Problem(413, "body_too_large", f"The body may have at most {limit} bytes.")


def unavailable_problem() -> Problem:
    return Problem(
        503, "unavailable", "The record cannot be reached right now. Try again.", headers=RETRY_AFTER_HEADERS
    )


def validation_problem(errors: Iterable[FieldError]) -> Problem:
    field_errors = list(errors)
    detail = field_errors[0].detail if len(field_errors) == 1 else f"{len(field_errors)} values do not fit."
    return Problem(422, "invalid", detail, field_errors)


def list_invalid_fields(error: InvalidInput) -> list[FieldError]:
    return [
        FieldError(message, "" if name == NON_FIELD_ERRORS else json_pointer(name.split(".")))
        for name, messages in error.errors.items()
        for message in messages
    ]


def domain_error_to_problem(error: DomainError) -> Problem:
    status = DOMAIN_ERROR_STATUSES.get(error.code, 409)
    headers = dict(HEADERS_BY_STATUS.get(status, {}))
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, EditConflict):
        return Problem(412, "precondition_failed", error.message)
    return Problem(status, error.code, error.message, headers=headers)


def drf_error_to_problem(error: drf.APIException) -> Problem:
    """Convert an error that Django REST framework itself raised, such as NotAcceptable (406).

    Errors about keys and bodies are not among these: this API checks keys and bodies with its own code.
    """
    if isinstance(error, drf.NotAcceptable):
        return Problem(406, "not_acceptable", "This is answered as application/json only.")
    return Problem(error.status_code, "bad_request", "The request cannot be read.")


# The first entry that matches the exception is used, so subclasses come before their base classes.
PROBLEM_BUILDERS: dict[type[BaseException] | tuple[type[BaseException], ...], Callable[[Any], Problem]] = {
    ProblemError: lambda error: error.problem,
    InvalidInput: lambda error: validation_problem(list_invalid_fields(error)),
    DomainError: domain_error_to_problem,
    Http404: lambda _: NOT_FOUND_PROBLEM,
    PermissionDenied: lambda _: Problem(403, "not_allowed", "This key may not do that."),
    BodyReadError: lambda error: Problem(error.status, error.code, error.detail, headers=error.headers),
    RequestDataTooBig: lambda _: body_too_large_problem(settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
    SuspiciousOperation: lambda _: Problem(400, "bad_request", "The request cannot be read."),
    drf.APIException: drf_error_to_problem,
    RequestTimeout: lambda _: TIMEOUT_PROBLEM,
    (OperationalError, InterfaceError): database_error_to_problem,
}
