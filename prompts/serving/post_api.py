"""What the two POSTs of prompts share: a key, a JSON body of a known shape, and an answer or a problem."""

from collections.abc import Callable
from functools import wraps
from re import split

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from core.body_size import body_length
from personas.api.authentication import refuse_key_in_address
from personas.api.exception_handler import invalid
from personas.api.problems import FieldError, Problem, ProblemError, pointer_to
from personas.errors import Invalid
from prompts.serving import Bot
from prompts.serving.fetch_api import Reply, refusal, secret_in, sent
from prompts.serving.resolve import facts_of_key, refuse_malformed

SMALL = 16_000
NOT_KEPT = ("Cache-Control", "private, no-store")
ONLY_POST = Problem(
    405, "method_not_allowed", "This address does not take that method.", headers={"Allow": "POST"}
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
    refuse_key_in_address(query)
    reader = Bot(secret_in(request.META.get("HTTP_AUTHORIZATION", ""), agent, query))
    refuse_malformed(reader)
    if body_length(request, unstated=SMALL + 1) > SMALL:
        # What strangers send costs no more than this look; a small body is read sooner than a key is found.
        facts_of_key(reader)
    if query:
        raise ProblemError(
            Problem(422, "invalid", "This address takes no parameters.", no_parameters(request))
        )
    return reader


def no_parameters(request: HttpRequest) -> list[FieldError]:
    return [FieldError("There is no such parameter.", parameter=name[:80]) for name in request.GET]


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
