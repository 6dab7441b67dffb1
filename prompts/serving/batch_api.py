"""POST /prompts:batchGet: fetch many prompts in one request, each with its own status and ledger row."""

from dataclasses import replace
from typing import Any

import structlog
from django.http import HttpRequest
from django.urls import path

from personas.api import schema as api_schema
from personas.api.exception_handler import exception_to_problem
from personas.api.key_limits import Touches
from personas.api.operations import Operation, raise_not_implemented
from personas.api.request_body import parse_json_body
from personas.api.responses import encode_json
from personas.api.validation import build_validator
from personas.api_keys.scopes import FETCH
from prompts.models import PRODUCTION
from prompts.serving.errors import InvalidKey
from prompts.serving.fetch_api import VARY_HEADER, Headers, RawResponse, serve_with_rate_limit
from prompts.serving.http_params import parse_at_parameter, parse_traceparent
from prompts.serving.post_api import NO_STORE_HEADER, add_body_pointers, post_view
from prompts.serving.request import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest
from prompts.serving.response_body import JSON_TYPE, render_json_body
from prompts.serving.schema import BATCH_SCHEMA, FAILED, NOT_MODIFIED, SERVED

log = structlog.get_logger(__name__)
MAX_BATCH_SIZE = 50
BATCH_ITEM_SCHEMA = api_schema.object_schema(
    {
        "agent": api_schema.slug_schema(),
        "channel": api_schema.slug_schema(),
        "label": api_schema.slug_schema(maxLength=40),
        "at": api_schema.datetime_schema(
            description=("Return the version that the label pointed to at this time.")
        ),
        "known_digest": api_schema.digest_schema(
            description="Digest of your copy. If it is current, the result is 304."
        ),
    },
    ("agent", "channel"),
    title="BatchItem",
)
BATCH_REQUEST_SCHEMA = api_schema.object_schema(
    {"prompts": api_schema.array_schema(BATCH_ITEM_SCHEMA, most=MAX_BATCH_SIZE, minItems=1)},
    title="BatchInput",
)
BATCH_REQUEST_VALIDATOR = build_validator(BATCH_REQUEST_SCHEMA)


@post_view
def batch_get_prompts(request: HttpRequest, client: KeyClient, request_id: str) -> RawResponse:
    """Return one result per requested prompt, in request order; a failed item does not fail the others."""
    items = parse_json_body(request, BATCH_REQUEST_VALIDATOR)["prompts"]
    rate_limit_headers: Headers = []
    traceparent = parse_traceparent(request.META.get("HTTP_TRACEPARENT", ""))
    context = CallContext(EMPTY_SLOTS, request_id, traceparent=traceparent)
    results = [render_batch_result(client, item, context, rate_limit_headers) for item in items]
    body = b'{"results":[' + b",".join(results) + b"]}"
    headers = [
        VARY_HEADER,
        NO_STORE_HEADER,
        ("X-Request-ID", request_id),
        ("Content-Type", JSON_TYPE),
        ("Content-Length", str(len(body))),
        # Only the two headers of the last item: they state the budget that remains after the whole request.
        *rate_limit_headers[-2:],
    ]
    return RawResponse(200, headers, body)


def render_batch_result(
    client: KeyClient, item: dict[str, Any], context: CallContext, rate_limit_headers: Headers
) -> bytes:
    at = parse_at_parameter(item["at"]) if "at" in item else None
    prompt_request = PromptRequest(item["agent"], item["channel"], item.get("label", PRODUCTION), at)
    call = replace(context, known_digests=(item["known_digest"],)) if "known_digest" in item else context
    try:
        served, headers = serve_with_rate_limit(client, prompt_request, call, "fetch")
    except InvalidKey:
        # All items use the same key, so the whole request fails.
        raise
    except Exception as error:  # any error becomes the result of this item
        problem = exception_to_problem(add_body_pointers(error))
        if problem.status == 500:
            log.exception("fetch_failed", request_id=call.request_id)
        problem_json = encode_json(problem.to_json(call.request_id))
        return render_batch_item(FAILED, prompt_request, "problem", problem_json)
    rate_limit_headers += headers.items()
    if served.status == 304:
        return render_batch_item(NOT_MODIFIED, prompt_request, "ledger_id", b"%d" % served.ledger_id)
    return render_batch_item(SERVED, prompt_request, "prompt", render_json_body(served, prompt_request)[0])


def render_batch_item(status: str, prompt_request: PromptRequest, name: str, value: bytes) -> bytes:
    """Render one result. The members need no JSON escaping: they are slugs, or already JSON."""
    start = (
        f'{{"status":"{status}","agent":"{prompt_request.agent}","channel":"{prompt_request.channel}",'
        f'"label":"{prompt_request.label}","{name}":'
    )
    return start.encode() + value + b"}"


batch_get_prompts.operations = {  # type: ignore[attr-defined]  # for the API schema; not called
    "POST": Operation(
        raise_not_implemented,
        "Get up to 50 prompts",
        operation_id="batchGetPrompts",
        bots=True,
        verb=FETCH,
        touches=Touches.LABEL,
        budget="fetch",
        answer=BATCH_SCHEMA,
        body=BATCH_REQUEST_SCHEMA,
        body_example={"prompts": [{"agent": "mira", "channel": "web"}]},
        tag="prompts",
    )
}
urlpatterns = [path("prompts:batchGet", batch_get_prompts, name="batch-get")]
