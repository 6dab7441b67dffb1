"""Shared code of the POST endpoints that serve prompts: authentication and error handling."""

import time
from collections.abc import Callable
from functools import wraps
from re import split

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from core.db.workspace_scope import all_workspaces
from core.request_body import mark_body_authenticated
from personas.api.authentication import check_no_key_in_url
from personas.api.exception_handler import validation_problem
from personas.api.problems import FieldError, Problem, ProblemError, json_pointer
from personas.errors import InvalidInput
from prompts.serving.fetch_api import (
    RawResponse,
    build_http_response,
    build_problem_response,
    require_bearer_secret,
)
from prompts.serving.request import KeyClient
from prompts.serving.resolve import authenticate_key, check_key_format

RECENT_KEY_SECONDS, MAX_RECENT_KEYS = 60.0, 10_000
NO_STORE_HEADER = ("Cache-Control", "private, no-store")
POST_ONLY_PROBLEM = Problem(
    405, "method_not_allowed", "This URL does not support that method.", headers={"Allow": "POST"}
)
PostHandler = Callable[..., RawResponse]


class RecentKeys:
    """Digests of keys that were valid a short time ago. Their requests' bodies are read without a query.

    This is not the authentication: the statement that records the fetch checks every key.
    """

    def __init__(self) -> None:
        self._valid_until: dict[str, float] = {}

    def has(self, digest: str) -> bool:
        return self._valid_until.get(digest, 0.0) > time.monotonic()

    def add(self, digest: str) -> None:
        if len(self._valid_until) >= MAX_RECENT_KEYS:
            self._valid_until.clear()
        self._valid_until[digest] = time.monotonic() + RECENT_KEY_SECONDS


recent_keys = RecentKeys()


def post_view(handler: PostHandler) -> Callable[..., HttpResponse]:
    """Turn a function of request, client and request id into a Django view.

    The view authenticates the client, and turns any exception into a problem response.
    """

    @login_not_required
    @csrf_exempt
    @wraps(handler)
    def view(request: HttpRequest, **url_arguments: str) -> HttpResponse:
        request_id: str = request.request_id  # type: ignore[attr-defined]  # set by the request log
        try:
            response = handler(
                request, authenticate_post(request, **url_arguments), request_id, **url_arguments
            )
        except Exception as error:  # noqa: BLE001  # any error becomes a problem response
            response = build_problem_response(add_body_pointers(error), request_id)
        return build_http_response(response)

    return view


def authenticate_post(request: HttpRequest, **url_arguments: str) -> KeyClient:
    if request.method != "POST":
        raise ProblemError(POST_ONLY_PROBLEM)
    query = request.META.get("QUERY_STRING", "")
    check_no_key_in_url(query)
    client = KeyClient(
        require_bearer_secret(request.META.get("HTTP_AUTHORIZATION", ""), url_arguments.values(), query)
    )
    check_key_format(client)
    if not recent_keys.has(client.digest):
        # Without a valid key the body is not read: a client that stops sending would block a thread.
        with all_workspaces():
            authenticate_key(client)
        recent_keys.add(client.digest)
    mark_body_authenticated(request)
    if query:
        raise ProblemError(
            Problem(422, "invalid", "This URL does not accept parameters.", list_parameter_errors(request))
        )
    return client


def list_parameter_errors(request: HttpRequest) -> list[FieldError]:
    return [FieldError("Unknown parameter.", parameter=name[:80]) for name in request.GET]


def add_body_pointers(error: Exception) -> Exception:
    """Convert the field paths of an InvalidInput error to JSON pointers: `host.os[0]` becomes /host/os/0.

    Other errors are returned unchanged.
    """
    if not isinstance(error, InvalidInput):
        return error
    errors = [
        FieldError(
            message, json_pointer([step for step in split(r"[.\[\]]+", name.removeprefix("slots.")) if step])
        )
        for name, messages in error.errors.items()
        for message in messages
    ]
    return ProblemError(validation_problem(errors))
