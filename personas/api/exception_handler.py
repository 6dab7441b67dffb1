"""Every error of the house as one problem: what the caller did, what changed meanwhile, what failed here."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions as drf

from personas.api.problems import FieldError, Problem, ProblemError, pointer_to
from personas.errors import Conflict, DomainError, Invalid

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="Dramatis"'}
SOON = {"Retry-After": "2"}
# Codes of domain errors that are not simply a refusal of what was asked (409).
STATUSES = {
    "bad_key": 401,
    "out_of_scope": 403,
    "not_allowed": 403,
    "not_found": 404,
    "unknown_fetch": 404,
    "no_version": 404,
    "nothing_then": 404,
    "erased": 410,
    "rolled_off": 410,
    "unknown_label": 404,
    "bad_bundle": 422,
    "unavailable": 503,
}
HEADERS: Mapping[int, Mapping[str, str]] = {401: CHALLENGE, 503: SOON}
FAULT = Problem(500, "server_error", "This is a fault of the server. It has been noted under the request id.")
NOT_FOUND = Problem(404, "not_found", "There is nothing here under this name.")


def problem_of(error: BaseException) -> Problem:
    """The answer to this failure; whatever is not foreseen is a fault of ours and says no more than that."""
    for kind, told in KINDS.items():
        if isinstance(error, kind):
            return told(error)
    return FAULT


def unavailable() -> Problem:
    return Problem(503, "unavailable", "The record cannot be reached right now. Try again.", headers=SOON)


def invalid(errors: Iterable[FieldError]) -> Problem:
    said = list(errors)
    detail = said[0].detail if len(said) == 1 else f"{len(said)} values do not fit."
    return Problem(422, "invalid", detail, said)


def fields_of(error: Invalid) -> list[FieldError]:
    return [
        FieldError(message, "" if name == NON_FIELD_ERRORS else pointer_to(name.split(".")))
        for name, messages in error.errors.items()
        for message in messages
    ]


def of_domain(error: DomainError) -> Problem:
    status = STATUSES.get(error.code, 409)
    headers = dict(HEADERS.get(status, {}))
    if isinstance(error, Conflict):
        return Problem(412, "precondition_failed", error.message)
    return Problem(status, error.code, error.message, headers=headers)


def of_framework(error: drf.APIException) -> Problem:
    """What the framework refuses by itself; keys and bodies are looked at by us."""
    if isinstance(error, drf.NotAcceptable):
        return Problem(406, "not_acceptable", "This is answered as application/json only.")
    return Problem(error.status_code, "bad_request", "The request cannot be read.")


# The first that fits counts, so the particular stands before the general.
KINDS: dict[type[BaseException] | tuple[type[BaseException], ...], Callable[[Any], Problem]] = {
    ProblemError: lambda error: error.problem,
    Invalid: lambda error: invalid(fields_of(error)),
    DomainError: of_domain,
    Http404: lambda _: NOT_FOUND,
    PermissionDenied: lambda _: Problem(403, "not_allowed", "This key may not do that."),
    RequestDataTooBig: lambda _: Problem(413, "body_too_large", "The body is too large."),
    SuspiciousOperation: lambda _: Problem(400, "bad_request", "The request cannot be read."),
    drf.APIException: of_framework,
    (OperationalError, InterfaceError): lambda _: unavailable(),
}
