"""GET /agents/{slug}/prompt: from the bare words of a request to an answer, without Django's request."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from personas.api.authentication import check_no_key_in_url, get_bearer_token
from personas.api.exception_handler import exception_to_problem, validation_problem
from personas.api.operations import Operation, raise_not_implemented
from personas.api.problems import PROBLEM_CONTENT_TYPE, FieldError, Problem, ProblemError
from personas.api.rate_limits import charge_rate_limit
from personas.api.schema import datetime_schema, slug_schema
from personas.api_keys.last_used import record_key_use
from personas.errors import InvalidInput
from prompts.models import PRODUCTION
from prompts.serving import (
    EMPTY_SLOTS,
    CallContext,
    InvalidKey,
    KeyClient,
    PromptRequest,
    ServedPrompt,
    serve_prompt,
)
from prompts.serving.http_params import negotiate_content_type, parse_if_none_match, parse_prompt_request
from prompts.serving.response_body import (
    JSON_TYPE,
    MARKDOWN_TYPE,
    format_repr_digest,
    render_json_body,
    render_markdown_body,
)
from prompts.serving.schema import SERVED_PROMPT_SCHEMA

log = structlog.get_logger(__name__)

MAX_HEADER_LENGTH = 4_000
CACHE_CONTROL = "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400"
VARY_HEADER = ("Vary", "Authorization, Accept")
BODY_RENDERERS = {
    "application/json": (JSON_TYPE, render_json_body),
    "text/markdown": (MARKDOWN_TYPE, render_markdown_body),
}
GET_ONLY_PROBLEM = Problem(
    405, "method_not_allowed", "This address does not take that method.", headers={"Allow": "GET, HEAD"}
)
NOT_ACCEPTABLE_PROBLEM = Problem(406, "not_acceptable", "Accept application/json or text/markdown.")
Headers = list[tuple[str, str]]


class RawResponse(NamedTuple):
    """What goes out, whichever door it leaves by."""

    status: int
    headers: Headers
    body: bytes


def handle_fetch(
    method: str, agent: str, query: str, said: Mapping[str, Any], request_id: str
) -> RawResponse:
    """The answer to a fetch; `said` are the request's headers, named as CGI does."""
    try:
        reply = answer_fetch(method, agent, query, said, request_id)
    except Exception as error:  # noqa: BLE001  # whatever it is, it becomes a problem
        reply = build_problem_response(error, request_id)
    # A HEAD is told what a GET would be, and is recorded all the same.
    return reply._replace(body=b"") if method == "HEAD" else reply


def answer_fetch(
    method: str, agent: str, query: str, said: Mapping[str, Any], request_id: str
) -> RawResponse:
    if method not in {"GET", "HEAD"}:
        raise ProblemError(GET_ONLY_PROBLEM)
    reader = KeyClient(require_bearer_secret(said.get("HTTP_AUTHORIZATION", ""), agent, query))
    check_header_lengths(query, said.get("HTTP_ACCEPT", ""), said.get("HTTP_IF_NONE_MATCH", ""))
    wanted = parse_prompt_request(agent, query)
    form = negotiate_content_type(said.get("HTTP_ACCEPT", ""))
    if not form:
        raise ProblemError(NOT_ACCEPTABLE_PROBLEM)
    call = CallContext(EMPTY_SLOTS, request_id, parse_if_none_match(said.get("HTTP_IF_NONE_MATCH", "")))
    served, limits = serve_with_rate_limit(reader, wanted, call, "fetch")
    return build_prompt_response(served, wanted, form, [*limits.items(), ("Cache-Control", CACHE_CONTROL)])


def check_header_lengths(*words: str) -> None:
    """What is read once and remembered must be short, or strangers could fill the memory."""
    if any(len(word) > MAX_HEADER_LENGTH for word in words):
        raise ProblemError(
            Problem(400, "bad_request", f"A header has more than {MAX_HEADER_LENGTH} characters.")
        )


def serve_with_rate_limit(
    reader: KeyClient, wanted: PromptRequest, call: CallContext, budget: str
) -> tuple[ServedPrompt, Mapping[str, str]]:
    """A prompt within the key's budget, with the headers that say what is left of it."""
    limits: Mapping[str, str] = {}

    def admit(key_id: int | None, workspace_id: int) -> None:
        nonlocal limits
        limits = charge_rate_limit(key_id or 0, workspace_id, budget)

    served = serve_prompt(reader, wanted, call, admit=admit)
    record_key_use(served.row.workspace, served.key_id or 0, served.at)
    return served, limits


def require_bearer_secret(authorization: str, agent: str, query: str) -> str:
    secret = get_bearer_token(authorization)
    if not secret:
        check_no_key_in_url(f"{agent}?{query}")
        raise InvalidKey
    return secret


def build_prompt_response(
    served: ServedPrompt, wanted: PromptRequest, form: str, more: Headers
) -> RawResponse:
    headers = [
        ("ETag", served.etag),
        VARY_HEADER,
        ("X-Request-ID", served.request_id),
        ("X-Dramatis-Version", str(served.number)),
        ("X-Ledger-ID", str(served.ledger_id)),
        *more,
    ]
    if served.status == 304:
        return RawResponse(304, headers, b"")
    content_type, written = BODY_RENDERERS[form]
    body, hashed = written(served, wanted)
    headers += [
        ("Content-Type", content_type),
        ("Content-Length", str(len(body))),
        ("X-Content-SHA256", served.served_digest),
        ("Repr-Digest", format_repr_digest(hashed)),
    ]
    return RawResponse(200, headers, body)


def build_problem_response(error: Exception, request_id: str) -> RawResponse:
    if isinstance(error, InvalidInput):
        wrong = [FieldError(words, parameter=name) for name, said in error.errors.items() for words in said]
        problem = validation_problem(wrong)
    else:
        problem = exception_to_problem(error)
    if problem.status == 500:
        log.error("fetch_failed", request_id=request_id, exc_info=error)
    body = problem.to_bytes(request_id)
    headers = [
        VARY_HEADER,
        ("X-Request-ID", request_id),
        ("Cache-Control", "no-store"),
        ("Content-Type", PROBLEM_CONTENT_TYPE),
        ("Content-Length", str(len(body))),
        *problem.headers.items(),
    ]
    return RawResponse(problem.status, headers, body)


@login_not_required
@csrf_exempt
def fetch_prompt(request: HttpRequest, agent: str) -> HttpResponse:
    """The same by Django's door, for whatever does not come by the fast one."""
    request_id: str = request.request_id  # type: ignore[attr-defined]  # set by the request log
    said = request.META
    reply = handle_fetch(request.method or "", agent, said.get("QUERY_STRING", ""), said, request_id)
    return build_http_response(reply)


def build_http_response(reply: RawResponse) -> HttpResponse:
    response = HttpResponse(reply.body, status=reply.status, headers=dict(reply.headers))
    if reply.status == 304:
        del response["Content-Type"]
    return response


fetch_prompt.operations = {  # type: ignore[attr-defined]  # published; this view does its own work
    "GET": Operation(
        raise_not_implemented,
        "Fetch a prompt by its label",
        bots=True,
        budget="fetch",
        answer=SERVED_PROMPT_SCHEMA,
        query={
            "channel": slug_schema(),
            "label": slug_schema(maxLength=40, default=PRODUCTION),
            "at": datetime_schema(description="What the label pointed at then."),
        },
        required_params=("channel",),
        extra_responses=[(304, {"description": "You have this version already."})],
        extra_content={"text/markdown": {"schema": {"type": "string"}}},
        refusals={410: "erased"},
        tag="prompts",
    )
}
urlpatterns = [path("agents/<slug:agent>/prompt", fetch_prompt, name="prompt")]
