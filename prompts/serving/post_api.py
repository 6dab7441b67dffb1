"""What the two POSTs of prompts share: a key, a JSON body of a known shape, and an answer or a problem."""

from collections.abc import Callable
from functools import wraps
from re import split

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from core.body_size import get_content_length
from personas.api.authentication import check_no_key_in_url
from personas.api.exception_handler import validation_problem
from personas.api.problems import FieldError, Problem, ProblemError, json_pointer
from personas.errors import InvalidInput
from prompts.serving import KeyClient
from prompts.serving.fetch_api import (
    RawResponse,
    build_http_response,
    build_problem_response,
    require_bearer_secret,
)
from prompts.serving.resolve import authenticate_key, check_key_format

MAX_UNAUTHENTICATED_BODY = 16_000
NO_STORE_HEADER = ("Cache-Control", "private, no-store")
POST_ONLY_PROBLEM = Problem(
    405, "method_not_allowed", "This address does not take that method.", headers={"Allow": "POST"}
)
PostHandler = Callable[..., RawResponse]


def post_view(answer: PostHandler) -> Callable[..., HttpResponse]:
    """A view from a function of request, reader and request id; whatever that raises is a problem."""

    @login_not_required
    @csrf_exempt
    @wraps(answer)
    def view(request: HttpRequest, **named: str) -> HttpResponse:
        request_id: str = request.request_id  # type: ignore[attr-defined]  # set by the request log
        try:
            reply = answer(request, authenticate_post(request, **named), request_id, **named)
        except Exception as error:  # noqa: BLE001  # whatever it is, it becomes a problem
            reply = build_problem_response(add_body_pointers(error), request_id)
        return build_http_response(reply)

    return view


def authenticate_post(request: HttpRequest, agent: str = "") -> KeyClient:
    if request.method != "POST":
        raise ProblemError(POST_ONLY_PROBLEM)
    query = request.META.get("QUERY_STRING", "")
    check_no_key_in_url(query)
    reader = KeyClient(require_bearer_secret(request.META.get("HTTP_AUTHORIZATION", ""), agent, query))
    check_key_format(reader)
    if get_content_length(request, invalid=MAX_UNAUTHENTICATED_BODY + 1) > MAX_UNAUTHENTICATED_BODY:
        # What strangers send costs no more than this look; a small body is read sooner than a key is found.
        authenticate_key(reader)
    if query:
        raise ProblemError(
            Problem(422, "invalid", "This address takes no parameters.", list_parameter_errors(request))
        )
    return reader


def list_parameter_errors(request: HttpRequest) -> list[FieldError]:
    return [FieldError("There is no such parameter.", parameter=name[:80]) for name in request.GET]


def add_body_pointers(error: Exception) -> Exception:
    """What serving says of a fact of the call, with the place in the body: `host.os[0]` is /host/os/0."""
    if not isinstance(error, InvalidInput):
        return error
    wrong = [
        FieldError(
            words, json_pointer([step for step in split(r"[.\[\]]+", name.removeprefix("slots.")) if step])
        )
        for name, said in error.errors.items()
        for words in said
    ]
    return ProblemError(validation_problem(wrong))
