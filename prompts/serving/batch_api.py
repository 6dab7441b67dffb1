"""POST /prompts:batchGet: many prompts in one request, each with its own status and its own row."""

import json
from typing import Any

import structlog
from django.http import HttpRequest
from django.urls import path

from personas.api import schema as api_schema
from personas.api.exception_handler import problem_of
from personas.api.operations import Operation, no_run
from personas.api.problems import Problem
from personas.api.request_body import body_of
from personas.api.validation import validator
from prompts.models import PRODUCTION
from prompts.serving import PLAIN, BadKey, Bot, Call, Wanted
from prompts.serving.fetch_api import VARY, Headers, Reply, handed_out
from prompts.serving.http_params import read_moment
from prompts.serving.post_api import NOT_KEPT, pointed, posted
from prompts.serving.response_body import JSON, json_body
from prompts.serving.schema import BATCH

log = structlog.get_logger(__name__)
MOST = 50
ITEM = api_schema.shape(
    {
        "agent": api_schema.slug(),
        "channel": api_schema.slug(),
        "label": api_schema.slug(maxLength=40),
        "at": api_schema.moment(description="What the label pointed at then."),
        "known_digest": api_schema.digest(
            description="Of the version the caller has: if it is the same, 304."
        ),
    },
    ("agent", "channel"),
)
SHAPE = api_schema.shape({"prompts": api_schema.listed(ITEM, most=MOST, minItems=1)})
CHECKED = validator(SHAPE)


@posted
def batch_get(request: HttpRequest, reader: Bot, request_id: str) -> Reply:
    """The answers stand in the order of the questions; one that is refused keeps no other back."""
    asked = body_of(request, CHECKED)["prompts"]
    limits: Headers = []
    results = [result_of(reader, item, request_id, limits) for item in asked]
    body = b'{"results":[' + b",".join(results) + b"]}"
    headers = [
        VARY,
        NOT_KEPT,
        ("X-Request-ID", request_id),
        ("Content-Type", JSON),
        ("Content-Length", str(len(body))),
        # The last that was taken says what is left.
        *limits[-2:],
    ]
    return Reply(200, headers, body)


def result_of(reader: Bot, item: dict[str, Any], request_id: str, limits: Headers) -> bytes:
    at = read_moment(item["at"]) if "at" in item else None
    wanted = Wanted(item["agent"], item["channel"], item.get("label", PRODUCTION), at)
    call = Call(PLAIN, request_id, (item["known_digest"],) if "known_digest" in item else ())
    try:
        served, left = handed_out(reader, wanted, call, "fetch")
    except BadKey:
        # Of the request as a whole.
        raise
    except Exception as error:  # whatever it is, it is this one's answer
        problem = problem_of(pointed(error))
        if problem.status == 500:
            log.exception("fetch_failed", request_id=request_id)
        return refused(problem, request_id)
    limits += left.items()
    if served.status == 304:
        return b'{"status":304,"ledger_id":%d}' % served.ledger_id
    return b'{"status":200,"prompt":%s}' % json_body(served, wanted)[0]


def refused(problem: Problem, request_id: str) -> bytes:
    said = {"status": problem.status, "problem": problem.as_json(request_id)}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


batch_get.operations = {  # type: ignore[attr-defined]  # published; this view does its own work
    "POST": Operation(
        no_run,
        "Fetch up to 50 prompts, each with its own status",
        bots=True,
        budget="fetch",
        answer=BATCH,
        body=SHAPE,
        body_example={"prompts": [{"agent": "mira", "channel": "web"}]},
        tag="prompts",
    )
}
urlpatterns = [path("prompts:batchGet", batch_get, name="batch-get")]
