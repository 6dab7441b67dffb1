"""Conversion of exceptions to problem responses (RFC 9457)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions as drf

from core.db.disk_full import is_disk_full
from core.outgoing.email_backend import MailServerUnavailable
from core.request_body import BodyReadError
from core.request_deadline import RequestTimeout
from personas.api.problems import FieldError, Problem, ProblemError, json_pointer
from personas.errors import DomainError, EditConflict, InvalidInput

AUTH_CHALLENGE = 'Bearer realm="Dramatis"'
AUTH_CHALLENGE_HEADERS = {"WWW-Authenticate": AUTH_CHALLENGE}
INVALID_KEY_HEADERS = {"WWW-Authenticate": f'{AUTH_CHALLENGE}, error="invalid_token"'}
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
    "daily_limit_reached": 429,
    "workspace_limit_reached": 429,
    "email_not_sent": 503,
    "unavailable": 503,
}
HEADERS_BY_STATUS: Mapping[int, Mapping[str, str]] = {401: INVALID_KEY_HEADERS, 503: RETRY_AFTER_HEADERS}
SERVER_ERROR_PROBLEM = Problem(
    500, "server_error", "Something went wrong on the server. The error was logged with the request ID."
)
TIMEOUT_PROBLEM = Problem(
    503,
    "unavailable",
    "The request timed out. Nothing was changed. Try again.",
    headers=RETRY_AFTER_HEADERS,
)
STORAGE_FULL_PROBLEM = Problem(
    503,
    "storage_full",
    "The database disk is full. Nothing was changed. Try again after the operator has freed disk space.",
    headers={"Retry-After": "30"},
)
EMAIL_PROBLEM = Problem(
    503,
    "email_not_sent",
    "The email could not be sent. Try again in a few seconds.",
    headers={"Retry-After": "10"},
)
NOT_FOUND_PROBLEM = Problem(404, "not_found", "Not found.")
MAX_NAMED_FIELDS = 8


class RecordNotFound(Http404):
    """A record does not exist, or is outside the limits of the key. The message is sent to the client."""


def exception_to_problem(error: BaseException) -> Problem:
    """Convert an exception to a problem. An unexpected exception becomes a 500 that reveals no details."""
    for kind, build_problem in PROBLEM_BUILDERS.items():
        if isinstance(error, kind):
            return build_problem(error)
    return SERVER_ERROR_PROBLEM


def database_error_to_problem(error: OperationalError | InterfaceError) -> Problem:
    return STORAGE_FULL_PROBLEM if is_disk_full(error) else unavailable_problem()


def body_too_large_problem(limit: int) -> Problem:
    return Problem(413, "body_too_large", f"The body can have at most {limit} bytes.")


def unavailable_problem() -> Problem:
    return Problem(
        503, "unavailable", "The database is temporarily unavailable. Try again.", headers=RETRY_AFTER_HEADERS
    )


def out_of_scope_problem(detail: str, verb: str = "") -> Problem:
    """Build a 403 that tells what the key lacks; `verb` is the verb that it needs, if that is the reason."""
    challenge = f'{AUTH_CHALLENGE}, error="insufficient_scope"' + (f', scope="{verb}"' if verb else "")
    return Problem(403, "out_of_scope", detail, headers={"WWW-Authenticate": challenge})


def missing_verb_problem(verb: str) -> Problem:
    return out_of_scope_problem(f"This requires the verb “{verb}”, which this key does not have.", verb)


def validation_problem(errors: Iterable[FieldError]) -> Problem:
    field_errors = list(errors)
    return Problem(422, "invalid", describe_field_errors(field_errors), field_errors)


def describe_field_errors(errors: Sequence[FieldError]) -> str:
    """Summarize the errors in one sentence that names the fields."""
    if len(errors) == 1:
        return describe_field_error(errors[0])
    names = list(dict.fromkeys(error.place for error in errors if error.place))
    shown = ", ".join(names[:MAX_NAMED_FIELDS]) + (" …" if len(names) > MAX_NAMED_FIELDS else "")
    return f"{len(errors)} values are invalid: {shown}." if shown else f"{len(errors)} values are invalid."


def describe_field_error(error: FieldError) -> str:
    if not error.place:
        return error.detail
    has_capital = error.detail[:1].isupper() and not error.detail[1:2].isupper()
    detail = error.detail[:1].lower() + error.detail[1:] if has_capital else error.detail
    return f"{error.place}: {detail}"


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
    if error.code == "out_of_scope":
        return out_of_scope_problem(error.message, getattr(error, "verb", ""))
    if isinstance(error, EditConflict):
        return Problem(412, "precondition_failed", error.message)
    return Problem(status, error.code, error.message, headers=headers)


def drf_error_to_problem(error: drf.APIException) -> Problem:
    """Convert an error that Django REST framework itself raised, such as NotAcceptable (406).

    Errors about keys and bodies are not among these: this API checks keys and bodies with its own code.
    """
    if isinstance(error, drf.NotAcceptable):
        return Problem(406, "not_acceptable", "Responses are available as application/json only.")
    return Problem(error.status_code, "bad_request", "The request is malformed.")


# The first entry that matches the exception is used, so subclasses come before their base classes.
PROBLEM_BUILDERS: dict[type[BaseException] | tuple[type[BaseException], ...], Callable[[Any], Problem]] = {
    ProblemError: lambda error: error.problem,
    InvalidInput: lambda error: validation_problem(list_invalid_fields(error)),
    DomainError: domain_error_to_problem,
    RecordNotFound: lambda error: Problem(404, "not_found", str(error)),
    Http404: lambda _: NOT_FOUND_PROBLEM,
    PermissionDenied: lambda _: Problem(403, "not_allowed", "This key is not allowed to do that."),
    BodyReadError: lambda error: Problem(error.status, error.code, error.detail, headers=error.headers),
    RequestDataTooBig: lambda _: body_too_large_problem(settings.DATA_UPLOAD_MAX_MEMORY_SIZE),
    SuspiciousOperation: lambda _: Problem(400, "bad_request", "The request is malformed."),
    drf.APIException: drf_error_to_problem,
    RequestTimeout: lambda _: TIMEOUT_PROBLEM,
    (OperationalError, InterfaceError): database_error_to_problem,
    MailServerUnavailable: lambda _: EMAIL_PROBLEM,
}
