"""Read skills as of the version that a label points to: the list, the instructions, and the SKILL.md itself.

Like fetches of prompts, each read of a text is in the ledger. The list has names and digests only.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from personas.api.key_limits import Touches
from personas.api.operations import Operation, raise_not_implemented
from personas.api.problems import ProblemError
from personas.api.rate_limits import charge_rate_limit
from personas.api.responses import datetime_json
from personas.api.schema import (
    Schema,
    array_schema,
    datetime_schema,
    digest_schema,
    integer_schema,
    object_schema,
    slug_schema,
)
from personas.api.views import parse_query_params
from personas.api_keys.last_used import record_key_use
from personas.api_keys.scopes import FETCH
from prompts.models import PRODUCTION, PromptVersion
from prompts.publishing.versions.serializers import (
    OFFERED_SKILL_SCHEMA,
    SKILL_ORIGIN_SCHEMA,
    TEXT_SCHEMA,
    VERSION_REF_SCHEMA,
    offered_skill_json,
    skill_file_origin_json,
    version_ref_json,
)
from prompts.serving.fetch_api import (
    GET_ONLY_PROBLEM,
    VARY_HEADER,
    Headers,
    RawResponse,
    build_http_response,
    build_problem_response,
    check_lengths,
    require_bearer_secret,
)
from prompts.serving.http_params import MAX_VERSION, parse_if_none_match, parse_traceparent
from prompts.serving.request import (
    EMPTY_SLOTS,
    CallContext,
    KeyClient,
    PromptRequest,
    RateLimitCheck,
    RateLimitOnce,
)
from prompts.serving.skill_files.services import (
    ServedSkill,
    choose_label_and_channel,
    find_skill_file,
    list_offered_files,
    serve_skill_file,
)
from skills.skill_format.parser import parse_skill

JSON_TYPE, MARKDOWN_TYPE = "application/json", "text/markdown; charset=utf-8"
# Clients may store a file, but must ask before they use it again: another version may be released by then.
CACHE_CONTROL = "private, no-cache"
OFFERED_SKILLS_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "label": TEXT_SCHEMA,
        **VERSION_REF_SCHEMA["properties"],
        "items": array_schema(OFFERED_SKILL_SCHEMA, most=100_000),
    },
    title="OfferedSkills",
)
SERVED_SKILL_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "label": TEXT_SCHEMA,
        **VERSION_REF_SCHEMA["properties"],
        "name": TEXT_SCHEMA,
        "description": TEXT_SCHEMA,
        "body": TEXT_SCHEMA | {"description": "The instructions: the SKILL.md without its front matter."},
        "served_digest": digest_schema(description="SHA-256 of the SKILL.md."),
        "size": integer_schema(description="Size of the SKILL.md in bytes."),
        "origin": SKILL_ORIGIN_SCHEMA,
        "served_at": datetime_schema(),
        "ledger_id": integer_schema(1),
    },
    title="ServedSkill",
)
QUERY: dict[str, Schema] = {
    "label": slug_schema(
        maxLength=40,
        description=f"Default: `{PRODUCTION}` or, for a key that is limited to one other label, that label.",
    ),
    "at": datetime_schema(description="As of the version that the label pointed to at this time."),
    "version": integer_schema(
        1, MAX_VERSION, description="The number of a version that the label points or has pointed to."
    ),
}
CHANNEL_PARAM = {
    "channel": slug_schema(description="Required if the agent has several channels that the key may use.")
}


class SkillCall:
    """A request for the skills of a prompt: who sent it, and which version it asks for."""

    def __init__(self, request: HttpRequest, agent: str, channel: str, query: Mapping[str, Schema]) -> None:
        meta = request.META
        text, if_none_match = meta.get("QUERY_STRING", ""), meta.get("HTTP_IF_NONE_MATCH", "")
        if request.method not in {"GET", "HEAD"}:
            raise ProblemError(GET_ONLY_PROBLEM)
        secret = require_bearer_secret(meta.get("HTTP_AUTHORIZATION", ""), (agent, channel), text)
        check_lengths(text, meta.get("HTTP_ACCEPT", ""), if_none_match)
        self.client, self.is_head = KeyClient(secret), request.method == "HEAD"
        self.request_id: str = request.request_id  # type: ignore[attr-defined]  # set by the request log
        self.rate_limit_headers: Mapping[str, str] = {}
        # Charges once per request, even if it is refused for its channel or served after several attempts.
        self.charge: RateLimitCheck = RateLimitOnce(self.charge_key).charge
        values = parse_query_params(request.GET, query)
        channel = channel or values.get("channel", "")
        label = values.get("label", "")
        if not label or not channel:
            label, channel = choose_label_and_channel(self.client, agent, channel, label, self.charge)
        at, version = values.get("at"), values.get("version")
        self.prompt_request = PromptRequest(agent, channel, label, at, FETCH, version)
        self.context = CallContext(
            EMPTY_SLOTS,
            self.request_id,
            parse_if_none_match(if_none_match),
            parse_traceparent(meta.get("HTTP_TRACEPARENT", "")),
        )

    def charge_key(self, key_id: int | None, workspace_id: int) -> None:
        self.rate_limit_headers = charge_rate_limit(key_id or 0, workspace_id, "fetch")

    def serve(self, name: str) -> ServedSkill:
        served = serve_skill_file(self.client, self.prompt_request, name, self.context, self.charge)
        record_key_use(served.row.workspace, served.key_id or 0, served.row.at)
        return served

    def list_offered(self) -> PromptVersion:
        return list_offered_files(self.client, self.prompt_request, self.charge)

    def build_headers(self, version: PromptVersion, etag: str = "") -> Headers:
        return [
            *([("ETag", etag)] if etag else []),
            VARY_HEADER,
            ("X-Request-ID", self.request_id),
            ("Dramatis-Version", str(version.number)),
            ("Cache-Control", CACHE_CONTROL),
            *self.rate_limit_headers.items(),
        ]


SkillHandler = Callable[[SkillCall, str], RawResponse]


def answer_file(call: SkillCall, name: str) -> RawResponse:
    return answer_skill(call, name, MARKDOWN_TYPE, lambda served: served.data)


def answer_instructions(call: SkillCall, name: str) -> RawResponse:
    return answer_skill(call, name, JSON_TYPE, lambda served: encode(served_skill_json(call, served)))


def answer_skill(
    call: SkillCall, name: str, content_type: str, render: Callable[[ServedSkill], bytes]
) -> RawResponse:
    """Serve the file. HEAD returns no text, so it has no ledger row."""
    if call.is_head:
        version = call.list_offered()
        file = find_skill_file(version, name)
        headers = call.build_headers(version, f'W/"{file["content"]}"')
        return RawResponse(200, [*headers, ("Content-Type", content_type)], b"")
    served = call.serve(name)
    headers = call.build_headers(served.version, served.etag)
    headers += [("Dramatis-Ledger", str(served.ledger_id)), ("Dramatis-Digest", served.served_digest)]
    if served.row.status == 304:
        return RawResponse(304, headers, b"")
    body = render(served)
    return RawResponse(
        200, [*headers, ("Content-Type", content_type), ("Content-Length", str(len(body)))], body
    )


def answer_list(call: SkillCall, name: str) -> RawResponse:
    version, prompt_request = call.list_offered(), call.prompt_request
    body = encode(
        {
            **request_json(prompt_request),
            **version_ref_json(version),
            "items": [offered_skill_json(file) for file in version.skill_files],
        }
    )
    headers = [*call.build_headers(version), ("Content-Type", JSON_TYPE), ("Content-Length", str(len(body)))]
    return RawResponse(200, headers, b"" if call.is_head else body)


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def request_json(prompt_request: PromptRequest) -> dict[str, Any]:
    return {
        "agent": prompt_request.agent,
        "channel": prompt_request.channel,
        "label": prompt_request.label,
    }


def served_skill_json(call: SkillCall, served: ServedSkill) -> dict[str, Any]:
    parsed = parse_skill(served.data).skill
    return {
        **request_json(call.prompt_request),
        **version_ref_json(served.version),
        "name": served.file["name"],
        "description": parsed.description if parsed else "",
        "body": parsed.body if parsed else served.data.decode(errors="replace"),
        "served_digest": served.served_digest,
        "size": len(served.data),
        "origin": skill_file_origin_json(served.file),
        "served_at": datetime_json(served.row.at),
        "ledger_id": served.ledger_id,
    }


def build_view(
    handler: SkillHandler, operation: Operation, query: Mapping[str, Schema]
) -> Callable[..., HttpResponseBase]:
    @login_not_required
    @csrf_exempt
    def view(request: HttpRequest, agent: str, channel: str = "", name: str = "") -> HttpResponseBase:
        try:
            response = handler(SkillCall(request, agent, channel, query), name)
        except Exception as error:  # noqa: BLE001  # any error becomes a problem response
            response = build_problem_response(error, request.request_id)  # type: ignore[attr-defined]
        return build_http_response(response)

    view.operations = {"GET": operation}  # type: ignore[attr-defined]  # for the API schema; not called
    return view


OPTIONS: dict[str, Any] = {
    "verb": FETCH,
    "bots": True,
    "touches": Touches.LABEL,
    "budget": "fetch",
    "refusals": {410: "erased"},
    "tag": "skills",
}
TEXT_OPTIONS: dict[str, Any] = OPTIONS | {
    "extra_responses": [(304, {"description": "Your copy is current."})],
}
SKILLS_PATH = "agents/<slug:agent>/channels/<slug:channel>/skills"
urlpatterns = [
    path(
        SKILLS_PATH,
        build_view(
            answer_list,
            Operation(
                raise_not_implemented,
                "List the skills that a released prompt offers",
                operation_id="listPromptSkills",
                answer=OFFERED_SKILLS_SCHEMA,
                query=QUERY,
                **OPTIONS,
            ),
            QUERY,
        ),
        name="prompt-skills",
    ),
    path(
        f"{SKILLS_PATH}/<str:name>",
        build_view(
            answer_instructions,
            Operation(
                raise_not_implemented,
                "Get the instructions of a skill that a released prompt offers",
                operation_id="getPromptSkill",
                answer=SERVED_SKILL_SCHEMA,
                query=QUERY,
                **TEXT_OPTIONS,
            ),
            QUERY,
        ),
        name="prompt-skill",
    ),
    # The URL of a skill in prompts. It ends with the name of the file, because some layouts print only the
    # folder, and bots append the file name.
    path(
        f"{SKILLS_PATH}/<str:name>/SKILL.md",
        build_view(
            answer_file,
            Operation(
                raise_not_implemented,
                "Get the SKILL.md of a skill that a released prompt offers",
                operation_id="getPromptSkillFile",
                query=QUERY,
                extra_content={"text/markdown": {"schema": {"type": "string"}}},
                **TEXT_OPTIONS,
            ),
            QUERY,
        ),
        name="prompt-skill-file",
    ),
    path(
        "agents/<slug:agent>/skills/<str:name>",
        build_view(
            answer_instructions,
            Operation(
                raise_not_implemented,
                "Get the instructions of a skill of an agent, as released",
                operation_id="getAgentSkill",
                answer=SERVED_SKILL_SCHEMA,
                query={**CHANNEL_PARAM, **QUERY},
                **TEXT_OPTIONS,
            ),
            {**CHANNEL_PARAM, **QUERY},
        ),
        name="agent-skills-one",
    ),
]
