"""GET /agents/{slug}/prompt: from the bare words of a request to an answer, without Django's request."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from personas.api.authentication import bearer_token, refuse_key_in_address
from personas.api.exception_handler import invalid, problem_of
from personas.api.operations import Operation, no_run
from personas.api.problems import CONTENT_TYPE, FieldError, Problem, ProblemError
from personas.api.rate_limits import take_from_budgets
from personas.api.schema import moment, slug
from personas.api_keys.last_used import used
from personas.errors import Invalid
from prompts.models import PRODUCTION
from prompts.serving import PLAIN, BadKey, Bot, Call, Served, Wanted, hand_out
from prompts.serving.http_params import chosen_type, known_versions, wanted_by
from prompts.serving.response_body import JSON, MARKDOWN, json_body, markdown_body, repr_digest
from prompts.serving.schema import PROMPT

log = structlog.get_logger(__name__)

MOST_CHARACTERS = 4_000
CACHING = "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400"
VARY = ("Vary", "Authorization, Accept")
FORMS = {"application/json": (JSON, json_body), "text/markdown": (MARKDOWN, markdown_body)}
ONLY_READ = Problem(
    405, "method_not_allowed", "This address does not take that method.", headers={"Allow": "GET, HEAD"}
)
NO_SUCH_FORM = Problem(406, "not_acceptable", "Accept application/json or text/markdown.")
Headers = list[tuple[str, str]]


class Reply(NamedTuple):
    """What goes out, whichever door it leaves by."""

    status: int
    headers: Headers
    body: bytes


def fetched(method: str, agent: str, query: str, said: Mapping[str, Any], request_id: str) -> Reply:
    """The answer to a fetch; `said` are the request's headers, named as CGI does."""
    try:
        reply = answered(method, agent, query, said, request_id)
    except Exception as error:  # noqa: BLE001  # whatever it is, it becomes a problem
        reply = refusal(error, request_id)
    # A HEAD is told what a GET would be, and is recorded all the same.
    return reply._replace(body=b"") if method == "HEAD" else reply


def answered(method: str, agent: str, query: str, said: Mapping[str, Any], request_id: str) -> Reply:
    if method not in {"GET", "HEAD"}:
        raise ProblemError(ONLY_READ)
    reader = Bot(secret_in(said.get("HTTP_AUTHORIZATION", ""), agent, query))
    refuse_long(query, said.get("HTTP_ACCEPT", ""), said.get("HTTP_IF_NONE_MATCH", ""))
    wanted = wanted_by(agent, query)
    form = chosen_type(said.get("HTTP_ACCEPT", ""))
    if not form:
        raise ProblemError(NO_SUCH_FORM)
    call = Call(PLAIN, request_id, known_versions(said.get("HTTP_IF_NONE_MATCH", "")))
    served, limits = handed_out(reader, wanted, call, "fetch")
    return told(served, wanted, form, [*limits.items(), ("Cache-Control", CACHING)])


def refuse_long(*words: str) -> None:
    """What is read once and remembered must be short, or strangers could fill the memory."""
    if any(len(word) > MOST_CHARACTERS for word in words):
        raise ProblemError(
            Problem(400, "bad_request", f"A header has more than {MOST_CHARACTERS} characters.")
        )


def handed_out(reader: Bot, wanted: Wanted, call: Call, budget: str) -> tuple[Served, Mapping[str, str]]:
    """A prompt within the key's budget, with the headers that say what is left of it."""
    limits: Mapping[str, str] = {}

    def admit(key_id: int | None, workspace_id: int) -> None:
        nonlocal limits
        limits = take_from_budgets(key_id or 0, workspace_id, budget)

    served = hand_out(reader, wanted, call, admit=admit)
    used(served.row.workspace, served.key_id or 0, served.at)
    return served, limits


def secret_in(authorization: str, agent: str, query: str) -> str:
    secret = bearer_token(authorization)
    if not secret:
        refuse_key_in_address(f"{agent}?{query}")
        raise BadKey
    return secret


def told(served: Served, wanted: Wanted, form: str, more: Headers) -> Reply:
    headers = [
        ("ETag", served.etag),
        VARY,
        ("X-Request-ID", served.request_id),
        ("X-Dramatis-Version", str(served.number)),
        ("X-Ledger-ID", str(served.ledger_id)),
        *more,
    ]
    if served.status == 304:
        return Reply(304, headers, b"")
    content_type, written = FORMS[form]
    body, hashed = written(served, wanted)
    headers += [
        ("Content-Type", content_type),
        ("Content-Length", str(len(body))),
        ("X-Content-SHA256", served.served_digest),
        ("Repr-Digest", repr_digest(hashed)),
    ]
    return Reply(200, headers, body)


def refusal(error: Exception, request_id: str) -> Reply:
    if isinstance(error, Invalid):
        wrong = [FieldError(words, parameter=name) for name, said in error.errors.items() for words in said]
        problem = invalid(wrong)
    else:
        problem = problem_of(error)
    if problem.status == 500:
        log.error("fetch_failed", request_id=request_id, exc_info=error)
    body = problem.body(request_id)
    headers = [
        VARY,
        ("X-Request-ID", request_id),
        ("Cache-Control", "no-store"),
        ("Content-Type", CONTENT_TYPE),
        ("Content-Length", str(len(body))),
        *problem.headers.items(),
    ]
    return Reply(problem.status, headers, body)


@login_not_required
@csrf_exempt
def prompt(request: HttpRequest, agent: str) -> HttpResponse:
    """The same by Django's door, for whatever does not come by the fast one."""
    request_id: str = request.request_id  # type: ignore[attr-defined]  # set by the request log
    said = request.META
    reply = fetched(request.method or "", agent, said.get("QUERY_STRING", ""), said, request_id)
    return sent(reply)


def sent(reply: Reply) -> HttpResponse:
    response = HttpResponse(reply.body, status=reply.status, headers=dict(reply.headers))
    if reply.status == 304:
        del response["Content-Type"]
    return response


prompt.operations = {  # type: ignore[attr-defined]  # published; this view does its own work
    "GET": Operation(
        no_run,
        "Fetch a prompt by its label",
        bots=True,
        budget="fetch",
        answer=PROMPT,
        query={
            "channel": slug(),
            "label": slug(maxLength=40, default=PRODUCTION),
            "at": moment(description="What the label pointed at then."),
        },
        needed=("channel",),
        others=[(304, {"description": "You have this version already."})],
        other_answers={"text/markdown": {"schema": {"type": "string"}}},
        refusals={410: "erased"},
        tag="prompts",
    )
}
urlpatterns = [path("agents/<slug:agent>/prompt", prompt, name="prompt")]
