"""What the two POSTs of prompts share: a key, a JSON body of a known shape, and an answer or a problem."""

from collections.abc import Callable
from functools import wraps
from re import split
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from jsonschema import Draft202012Validator

from personas.api.json_bodies import read_json
from personas.api.problems import FieldError, Problem, ProblemError, pointer_to
from personas.api.refusals import invalid
from personas.api.validating import errors_in
from personas.errors import Invalid
from prompts.api.fetching import Reply, refusal, secret_in, sent
from prompts.api.parameters import refuse_key
from prompts.serving import Bot
from prompts.serving.resolving import facts_of_key, refuse_malformed

SMALL = 16_000
NOT_KEPT = ("Cache-Control", "private, no-store")
ONLY_POST = Problem(
    405, "method_not_allowed", "This address does not take that method.", headers={"Allow": "POST"}
)
NOT_JSON = Problem(
    415,
    "unsupported_media_type",
    "Send application/json.",
    [FieldError("Send application/json.", header="Content-Type")],
)
View = Callable[..., Reply]


def posted(answer: View) -> Callable[..., HttpResponse]:
    """A view from a function of request, reader and request id; whatever that raises is a problem."""

    @login_not_required
    @csrf_exempt
    @wraps(answer)
    def view(request: HttpRequest, **named: str) -> HttpResponse:
        request_id: str = request.request_id  # type: ignore[attr-defined]  # set by the request log
        try:
            reply = answer(request, reader_of(request, **named), request_id, **named)
        except Exception as error:  # noqa: BLE001  # whatever it is, it becomes a problem
            reply = refusal(pointed(error), request_id)
        return sent(reply)

    return view


def reader_of(request: HttpRequest, agent: str = "") -> Bot:
    if request.method != "POST":
        raise ProblemError(ONLY_POST)
    query = request.META.get("QUERY_STRING", "")
    refuse_key(query)
    reader = Bot(secret_in(request.META.get("HTTP_AUTHORIZATION", ""), agent, query))
    refuse_malformed(reader)
    if body_length(request) > SMALL:
        # What strangers send costs no more than this look; a small body is read sooner than a key is found.
        facts_of_key(reader)
    if query:
        raise ProblemError(
            Problem(422, "invalid", "This address takes no parameters.", no_parameters(request))
        )
    return reader


def body_length(request: HttpRequest) -> int:
    stated = request.META.get("CONTENT_LENGTH") or "0"
    return int(stated) if stated.isascii() and stated.isdigit() else SMALL + 1


def no_parameters(request: HttpRequest) -> list[FieldError]:
    return [FieldError("There is no such parameter.", parameter=name[:80]) for name in request.GET]


def body_of(request: HttpRequest, shape: Draft202012Validator) -> Any:
    kind = (request.content_type or "").strip().lower()
    if kind != "application/json":
        raise ProblemError(NOT_JSON)
    value = read_json(request.body)
    if wrong := errors_in(shape, value):
        raise ProblemError(invalid(wrong))
    return value


def pointed(error: Exception) -> Exception:
    """What serving says of a fact of the call, with the place in the body: `host.os[0]` is /host/os/0."""
    if not isinstance(error, Invalid):
        return error
    wrong = [
        FieldError(
            words, pointer_to([step for step in split(r"[.\[\]]+", name.removeprefix("slots.")) if step])
        )
        for name, said in error.errors.items()
        for words in said
    ]
    return ProblemError(invalid(wrong))
