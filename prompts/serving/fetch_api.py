"""GET /agents/{agent}/channels/{channel}/prompt: fetch a prompt as JSON or as text (Accept, `prompt.md`).

The handler takes plain request values instead of a Django request, because the WSGI fast path
(`project.fetch_fast_path`) calls it as well.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import time_ns
from typing import Any, NamedTuple, TypeVar

import structlog
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from core.spans import AttributeValue, record_span
from personas.api.authentication import check_no_key_in_url, get_bearer_token, missing_key_error
from personas.api.exception_handler import exception_to_problem, validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import Operation, raise_not_implemented
from personas.api.problems import PROBLEM_CONTENT_TYPE, FieldError, Problem, ProblemError
from personas.api.rate_limits import charge_rate_limit
from personas.api.schema import datetime_schema, integer_schema, slug_schema
from personas.api_keys.last_used import record_key_use
from personas.api_keys.scopes import FETCH
from personas.errors import InvalidInput
from prompts.models import PRODUCTION
from prompts.serving.http_params import (
    MAX_VERSION,
    PROMPT_TYPES,
    TEXT_TYPES,
    negotiate_content_type,
    parse_if_none_match,
    parse_prompt_request,
    parse_traceparent,
)
from prompts.serving.request import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest
from prompts.serving.response_body import JSON_TYPE, format_repr_digest, render_json_body, render_text_body
from prompts.serving.schema import SERVED_PROMPT_SCHEMA
from prompts.serving.services import ServedPrompt, describe_prompt, serve_prompt

log = structlog.get_logger(__name__)

MAX_HEADER_LENGTH = 4_000
FETCH_SPAN = "dramatis.fetch"
CACHE_CONTROL = "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400"
VARY_HEADER = ("Vary", "Authorization, Accept")
BODY_RENDERERS = {
    "application/json": (JSON_TYPE, render_json_body),
    "text/markdown": ("text/markdown; charset=utf-8", render_text_body),
    "text/plain": ("text/plain; charset=utf-8", render_text_body),
}
GET_ONLY_PROBLEM = Problem(
    405, "method_not_allowed", "This URL does not support that method.", headers={"Allow": "GET, HEAD"}
)
PROMPT_TYPE_PROBLEM = Problem(
    406, "not_acceptable", "This URL returns application/json or, the text only, text/markdown."
)
# Where a URL also has JSON, the ETag of the text is the digest of the version with this suffix.
TEXT_TAG = "-text"
MARKDOWN = "text/markdown"
TEXT_ONLY_PROBLEM = Problem(
    406, "not_acceptable", "This URL returns text/markdown or text/plain. For JSON, use …/prompt."
)
Headers = list[tuple[str, str]]
AnyResponse = TypeVar("AnyResponse", bound=HttpResponseBase)


class FetchTarget(NamedTuple):
    """The parts of the path of a fetch."""

    agent: str
    channel: str
    # Whether the path ends with `prompt.md`: the response is the text alone.
    is_text: bool = False


class RawResponse(NamedTuple):
    """Status, headers and body of a response. Both the WSGI fast path and the Django view can send it."""

    status: int
    headers: Headers
    body: bytes


def handle_fetch(
    method: str, target: FetchTarget, query: str, meta: Mapping[str, Any], request_id: str
) -> RawResponse:
    """Return the response to a fetch. `meta` holds the request headers under CGI names, as in HTTP_ACCEPT."""
    try:
        response = answer_fetch(method, target, query, meta, request_id)
    except Exception as error:  # noqa: BLE001  # any error becomes a problem response
        response = build_problem_response(error, request_id)
    return response._replace(body=b"") if method == "HEAD" else response


def answer_fetch(
    method: str, target: FetchTarget, query: str, meta: Mapping[str, Any], request_id: str
) -> RawResponse:
    if method not in {"GET", "HEAD"}:
        raise ProblemError(GET_ONLY_PROBLEM)
    client = KeyClient(require_bearer_secret(meta.get("HTTP_AUTHORIZATION", ""), target[:2], query))
    check_lengths(query, meta.get("HTTP_ACCEPT", ""), meta.get("HTTP_IF_NONE_MATCH", ""))
    prompt_request = parse_prompt_request(target.agent, target.channel, query)
    content_type = require_content_type(meta.get("HTTP_ACCEPT", ""), is_text=target.is_text)
    is_negotiated_text = content_type == MARKDOWN and not target.is_text
    known = parse_if_none_match(meta.get("HTTP_IF_NONE_MATCH", ""))
    call = CallContext(
        EMPTY_SLOTS,
        request_id,
        list_text_digests(known) if is_negotiated_text else known,
        parse_traceparent(meta.get("HTTP_TRACEPARENT", "")),
    )
    is_head = method == "HEAD"
    served, rate_limit_headers = serve_with_rate_limit(
        client, prompt_request, call, "fetch", describe_prompt if is_head else serve_prompt
    )
    headers = [*rate_limit_headers.items(), ("Cache-Control", CACHE_CONTROL)]
    response = (
        build_head_response(served, content_type, headers)
        if is_head
        else build_prompt_response(served, prompt_request, content_type, headers)
    )
    return tag_as_text(response, served) if is_negotiated_text else response


def list_text_digests(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the digests of the versions whose text the client has; tags of the JSON do not count."""
    return tuple([tag.removesuffix(TEXT_TAG) for tag in tags if tag == "*" or tag.endswith(TEXT_TAG)])


def tag_as_text(response: RawResponse, served: ServedPrompt) -> RawResponse:
    """Replace the ETag by that of the text: two representations of one URL need different ones."""
    headers = [(name, value) for name, value in response.headers if name != "ETag"]
    return response._replace(headers=[("ETag", f'W/"{served.digest}{TEXT_TAG}"'), *headers])


def require_content_type(accept: str, *, is_text: bool = False) -> str:
    content_type = negotiate_content_type(accept, TEXT_TYPES if is_text else PROMPT_TYPES)
    if not content_type:
        raise ProblemError(TEXT_ONLY_PROBLEM if is_text else PROMPT_TYPE_PROBLEM)
    return content_type


def check_lengths(query: str, accept: str, if_none_match: str) -> None:
    """Raise a problem if the query or a header is too long.

    Values are cached with their parsed form, so long ones would let clients fill the memory.
    """
    for name, value in (("Accept", accept), ("If-None-Match", if_none_match)):
        if len(value) > MAX_HEADER_LENGTH:
            detail = f"The header {name} has more than {MAX_HEADER_LENGTH} characters."
            raise ProblemError(Problem(400, "bad_request", detail, [FieldError(detail, header=name)]))
    if len(query) > MAX_HEADER_LENGTH:
        detail = f"The query has more than {MAX_HEADER_LENGTH} characters."
        raise ProblemError(Problem(400, "bad_request", detail))


def serve_with_rate_limit(
    client: KeyClient,
    prompt_request: PromptRequest,
    call: CallContext,
    budget: str,
    serve: Callable[..., ServedPrompt] = serve_prompt,
) -> tuple[ServedPrompt, Mapping[str, str]]:
    """Charge the key's rate limit and serve a prompt. Return the prompt and the RateLimit headers."""
    rate_limit_headers: Mapping[str, str] = {}

    def charge(key_id: int | None, workspace_id: int) -> None:
        nonlocal rate_limit_headers
        rate_limit_headers = charge_rate_limit(key_id or 0, workspace_id, budget)

    if settings.DRAMATIS_TRACING:
        served = serve_with_span(
            partial(serve, client, prompt_request, call, check_rate_limit=charge), prompt_request, call
        )
    else:
        served = serve(client, prompt_request, call, check_rate_limit=charge)
    record_key_use(served.row.workspace, served.key_id or 0, served.at)
    return served, rate_limit_headers


def serve_with_span(
    serve: Callable[[], ServedPrompt], prompt_request: PromptRequest, call: CallContext
) -> ServedPrompt:
    """Serve a prompt and write its span, which has names, numbers and digests, and no text."""
    started_at = time_ns()
    attributes: dict[str, AttributeValue] = {
        "gen_ai.prompt.name": f"{prompt_request.agent}.{prompt_request.channel}",
        "gen_ai.agent.name": prompt_request.agent,
        "dramatis.label": prompt_request.recorded_label,
        "dramatis.request_id": call.request_id,
    }
    try:
        served = serve()
    except Exception as error:
        name = type(error).__name__
        record_span(FETCH_SPAN, started_at, attributes, traceparent=call.traceparent, error=name)
        raise
    attributes |= {
        "gen_ai.prompt.version": str(served.number),
        "dramatis.digest": served.digest,
        "dramatis.ledger_id": served.ledger_id,
        "dramatis.status": served.status,
    }
    record_span(FETCH_SPAN, started_at, attributes, traceparent=call.traceparent)
    return served


def require_bearer_secret(authorization: str, path_values: Iterable[str], query: str) -> str:
    secret = get_bearer_token(authorization)
    if not secret:
        check_no_key_in_url(f"{'/'.join(path_values)}?{query}")
        raise missing_key_error()
    return secret


def build_prompt_response(
    served: ServedPrompt, prompt_request: PromptRequest, content_type: str, extra_headers: Headers
) -> RawResponse:
    headers = [
        *list_prompt_headers(served),
        ("Dramatis-Ledger", str(served.ledger_id)),
        *extra_headers,
    ]
    if served.status == 304:
        return RawResponse(304, headers, b"")
    header_value, render_body = BODY_RENDERERS[content_type]
    body, body_hash = render_body(served, prompt_request)
    headers += [
        ("Content-Type", header_value),
        ("Content-Length", str(len(body))),
        ("Repr-Digest", format_repr_digest(body_hash)),
    ]
    return RawResponse(200, headers, body)


def build_head_response(served: ServedPrompt, content_type: str, extra_headers: Headers) -> RawResponse:
    """Build the response to HEAD: no text leaves the server, so there is no ledger row.

    It has no Content-Length and no Repr-Digest, because the body of a GET contains the id of its row.
    """
    headers = [*list_prompt_headers(served), *extra_headers]
    if served.status == 200:
        headers.append(("Content-Type", BODY_RENDERERS[content_type][0]))
    return RawResponse(served.status, headers, b"")


def list_prompt_headers(served: ServedPrompt) -> Headers:
    return [
        ("ETag", served.etag),
        VARY_HEADER,
        ("X-Request-ID", served.request_id),
        ("Dramatis-Version", str(served.number)),
        ("Dramatis-Digest", served.served_digest),
    ]


def build_problem_response(error: Exception, request_id: str) -> RawResponse:
    if isinstance(error, InvalidInput):
        errors = [
            FieldError(message, parameter=name)
            for name, messages in error.errors.items()
            for message in messages
        ]
        problem = validation_problem(errors)
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
def fetch_prompt(
    request: HttpRequest, agent: str, channel: str, *, is_text: bool = False
) -> HttpResponseBase:
    """Fetch a prompt. This Django view serves the requests that the WSGI fast path does not handle."""
    request_id: str = request.request_id  # type: ignore[attr-defined]  # set by the request log
    meta = request.META
    target = FetchTarget(agent, channel, is_text)
    response = handle_fetch(request.method or "", target, meta.get("QUERY_STRING", ""), meta, request_id)
    if request.method == "HEAD":
        # Streamed, so that Django's middleware does not add the length of the empty body.
        return remove_content_type(
            StreamingHttpResponse((), status=response.status, headers=dict(response.headers))
        )
    return build_http_response(response)


@login_not_required
@csrf_exempt
def fetch_prompt_text(request: HttpRequest, agent: str, channel: str) -> HttpResponseBase:
    return fetch_prompt(request, agent, channel, is_text=True)


def build_http_response(raw: RawResponse) -> HttpResponse:
    return remove_content_type(HttpResponse(raw.body, status=raw.status, headers=dict(raw.headers)))


def remove_content_type(response: AnyResponse) -> AnyResponse:
    """Remove the Content-Type that Django adds to a 304."""
    if response.status_code == 304:
        del response["Content-Type"]
    return response


FETCH_OPTIONS: dict[str, Any] = {
    "verb": FETCH,
    "bots": True,
    "touches": Touches.LABEL,
    "budget": "fetch",
    "query": {
        "label": slug_schema(maxLength=40, default=PRODUCTION),
        "at": datetime_schema(description="Return the version that the label pointed to at this time."),
        "version": integer_schema(
            1,
            MAX_VERSION,
            description=(
                "The number of a version that the label points or has pointed to; with `at`, at that time."
            ),
        ),
    },
    "extra_responses": [(304, {"description": "Your copy is current."})],
    "refusals": {410: "erased"},
    "tag": "prompts",
}
TEXT_CONTENT: dict[str, Any] = {MARKDOWN: {"schema": {"type": "string"}}}
fetch_prompt.operations = {  # type: ignore[attr-defined]  # for the API schema; not called
    "GET": Operation(
        raise_not_implemented,
        "Get a prompt",
        operation_id="getPrompt",
        answer=SERVED_PROMPT_SCHEMA,
        extra_content=TEXT_CONTENT,
        note="With `Accept: text/markdown`, the response is the text only.",
        **FETCH_OPTIONS,
    )
}
fetch_prompt_text.operations = {  # type: ignore[attr-defined]  # as above
    "GET": Operation(
        raise_not_implemented,
        "Get the text of a prompt",
        operation_id="getPromptText",
        extra_content=TEXT_CONTENT,
        **FETCH_OPTIONS,
    )
}
PROMPT_PATH = "agents/<slug:agent>/channels/<slug:channel>/prompt"
urlpatterns = [
    path(PROMPT_PATH, fetch_prompt, name="prompt"),
    path(f"{PROMPT_PATH}.md", fetch_prompt_text, name="prompt-text"),
]
