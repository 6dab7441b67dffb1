"""POST …/prompt:render: serve the labelled version with its slots filled from the request."""

import json
from typing import Any

from django.http import HttpRequest
from django.urls import path

from personas.api import schema as api_schema
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import Operation, raise_not_implemented
from personas.api.problems import FieldError, ProblemError
from personas.api.request_body import parse_json_body
from personas.api.validation import build_validator
from personas.api_keys.scopes import RENDER
from personas.errors import InvalidInput
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.runtime_lines import KNOWN_FACTS
from prompts.assembly.slots import Slots
from prompts.models import PRODUCTION
from prompts.serving.call_slots import MAX_CALL_SIZE
from prompts.serving.fetch_api import (
    PROMPT_PATH,
    TEXT_CONTENT,
    RawResponse,
    build_prompt_response,
    check_lengths,
    require_content_type,
    serve_with_rate_limit,
)
from prompts.serving.http_params import parse_traceparent
from prompts.serving.post_api import NO_STORE_HEADER, post_view
from prompts.serving.request import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest
from prompts.serving.resolve import authenticate_key, check_key_format, check_scopes
from prompts.serving.schema import SERVED_PROMPT_SCHEMA
from prompts.serving.slot_values import find_task_json, find_timezone

MAX_TEXT_LENGTH, MAX_DATA_LENGTH = 20_000, MAX_CALL_SIZE
# Response header with the names of the fields that the layout has no place for.
UNPLACED_HEADER = "Dramatis-Unplaced"
CALL_TOOL_SCHEMA = api_schema.object_schema(
    {
        "name": api_schema.line_schema(100, least=1),
        "description": api_schema.prose_schema(MAX_TEXT_LENGTH),
        "snippet": api_schema.prose_schema(2_000),
        "guidelines": api_schema.array_schema(api_schema.line_schema(1_000)),
        "parameters": api_schema.any_object_schema(description="A JSON Schema."),
        "signature": api_schema.prose_schema(4_000),
    },
    ("name",),
    title="CallTool",
)
LIMIT_SCHEMA = api_schema.integer_schema(1, 10_000_000)
# The fields that change the inputs of the prompt for one call. They take precedence over stored values.
CALL_INPUT_SCHEMAS: dict[str, Any] = {
    "data": api_schema.any_object_schema(
        description="Values that a program can read (ptc). They replace the stored sample data."
    ),
    "signature": api_schema.prose_schema(4_000, format=api_schema.SIGNATURE_FORMAT),
    "hidden": api_schema.array_schema(
        api_schema.line_schema(200, least=1),
        description="Data fields that the prompt shows as [Hidden], in addition to those that start with _.",
    ),
    "mission": api_schema.prose_schema(MAX_TEXT_LENGTH, description="The task, with {{placeholders}}."),
    "limits": api_schema.object_schema(
        {
            "total": api_schema.integer_schema(500, 10_000_000),
            "sections": {"type": "object", "additionalProperties": LIMIT_SCHEMA, "maxProperties": 100},
            "per_file": LIMIT_SCHEMA,
            "all_files": LIMIT_SCHEMA,
            "list_sample": LIMIT_SCHEMA,
            "string_truncate": LIMIT_SCHEMA,
            "omit_reference": api_schema.boolean_schema(),
        },
        (),
        description=(
            "Limits in characters for the prompt, sections and files; items and characters of samples."
        ),
        title="CallLimits",
    ),
    "working_directory": api_schema.line_schema(1_000),
    "directories": api_schema.array_schema(
        api_schema.line_schema(1_000, least=1),
        most=100,
        description="Other directories that the agent can access, in place of those of the agent.",
    ),
    "mode": api_schema.enum_schema(
        ("agent", "single_turn"), description="Mode of the ptc layout.", title="PromptMode"
    ),
    "entry": api_schema.enum_schema(("full", "simple", "minimal"), title="PromptEntry"),
    "native_tools": api_schema.boolean_schema(
        description="Whether the provider accepts tool definitions. If not, the text describes the tools."
    ),
}
CALL_TASK_SCHEMA = api_schema.object_schema(
    {
        "title": api_schema.line_schema(200, least=1),
        "number": api_schema.integer_schema(1, 2**31 - 1, description="Number in your own system."),
        "description": api_schema.prose_schema(MAX_TEXT_LENGTH),
        "status": api_schema.line_schema(200, description="Any text."),
        "steps": api_schema.array_schema(
            api_schema.object_schema(
                {"title": api_schema.line_schema(500, least=1), "is_done": api_schema.boolean_schema()},
                ("title",),
                title="CallStep",
            )
        ),
    },
    ("title",),
    description="A task that is not stored in Dramatis. It is recorded with the call.",
    title="CallTask",
)
MAX_APPENDED_TEXTS = 50
APPEND_SCHEMA = api_schema.prose_schema(MAX_TEXT_LENGTH)


def build_facts_schema(name: str, description: str) -> api_schema.Schema:
    """Return the schema of `host` or `sandbox`: the known keys are described, other keys are ignored."""
    properties = {key: {"description": text} for key, text in KNOWN_FACTS[name].items()}
    title = f"Call{name.capitalize()}"
    return api_schema.any_object_schema(properties=properties, description=description, title=title)


RENDER_REQUEST_SCHEMA = api_schema.object_schema(
    {
        "label": api_schema.slug_schema(maxLength=40),
        "now": api_schema.datetime_schema(
            description="The local time of the call. Default: the time of the server."
        ),
        "timezone": api_schema.line_schema(64, format=api_schema.TIME_ZONE_FORMAT),
        "host": build_facts_schema(
            "host", "The environment of the call. Other keys have no effect; `warnings` names them."
        ),
        "sandbox": build_facts_schema(
            "sandbox",
            "Where the agent's commands run. Other keys have no effect; `warnings` names them.",
        ),
        "session": api_schema.object_schema(
            {"id": api_schema.line_schema(200), "plan_path": api_schema.line_schema(1_000)},
            (),
            title="CallSession",
        ),
        "task": {
            "anyOf": [api_schema.integer_schema(1, 2**31 - 1), CALL_TASK_SCHEMA],
            "description": "The number of a task of the agent, or of a task without an agent; or a task "
            "itself.",
        },
        "is_background": api_schema.boolean_schema(
            description=("Whether nobody reads the response of the agent.")
        ),
        "previous_error": api_schema.object_schema(
            {
                "error": api_schema.line_schema(500, least=1),
                "message": api_schema.prose_schema(MAX_TEXT_LENGTH),
                "context": api_schema.prose_schema(MAX_TEXT_LENGTH),
            },
            ("error",),
            title="PreviousError",
        ),
        "tools": api_schema.array_schema(
            {"anyOf": [api_schema.line_schema(100, least=1), CALL_TOOL_SCHEMA]},
            description="The tools of this call: names of the agent's tools, or definitions.",
        ),
        "append": {
            "anyOf": [APPEND_SCHEMA, api_schema.array_schema(APPEND_SCHEMA, most=MAX_APPENDED_TEXTS)],
            "description": "Text for this call only, appended to the prompt. Several texts are appended in "
            "order, with a blank line between them.",
        },
        "replace": api_schema.prose_schema(
            MAX_CALL_SIZE, description="Text for this call only, which replaces the base of the prompt."
        ),
        "messages": api_schema.array_schema(
            api_schema.object_schema(
                {
                    "content": api_schema.prose_schema(MAX_TEXT_LENGTH, least=1),
                    "role": api_schema.enum_schema(("user", "assistant"), title="MessageRole"),
                },
                ("content",),
                title="MessageInput",
            )
        ),
    }
    | CALL_INPUT_SCHEMAS,
    (),
    title="RenderInput",
)
RENDER_REQUEST_VALIDATOR = build_validator(RENDER_REQUEST_SCHEMA)
NON_SLOT_FIELDS = ("label", "task")


@post_view
def render_prompt_view(
    request: HttpRequest, client: KeyClient, request_id: str, agent: str, channel: str
) -> RawResponse:
    """Serve a prompt, with its slots filled from the request body."""
    check_lengths("", request.META.get("HTTP_ACCEPT", ""), "")
    body = parse_json_body(request, RENDER_REQUEST_VALIDATOR)
    content_type = require_content_type(request.META.get("HTTP_ACCEPT", ""))
    prompt_request = PromptRequest(agent, channel, body.get("label", PRODUCTION), action=RENDER)
    call = CallContext(
        parse_request_slots(client, prompt_request, body),
        request_id,
        traceparent=parse_traceparent(request.META.get("HTTP_TRACEPARENT", "")),
    )
    served, rate_limit_headers = serve_with_rate_limit(client, prompt_request, call, "render")
    headers = [*rate_limit_headers.items(), NO_STORE_HEADER]
    if served.unplaced:
        headers.append((UNPLACED_HEADER, ", ".join(name.removeprefix("slots.") for name in served.unplaced)))
    return build_prompt_response(served, prompt_request, content_type, headers)


def parse_request_slots(client: KeyClient, prompt_request: PromptRequest, body: dict[str, Any]) -> Slots:
    values = {name: value for name, value in body.items() if name not in NON_SLOT_FIELDS}
    if "task" in body:
        task = body["task"]
        values["task"] = (
            {"number": 0} | task
            if isinstance(task, dict)
            else require_task_json(client, prompt_request, int(task))
        )
    if body.get("timezone") and find_timezone(body["timezone"]) is None:
        raise InvalidInput.on("timezone", "Must be an IANA time zone, for example Europe/Paris.")
    slots = parse_dataclass(Slots, values | convert_call_inputs(body))
    # A call without slot values is like a fetch. This is checked by identity with EMPTY_SLOTS.
    return EMPTY_SLOTS if slots == EMPTY_SLOTS else slots


def convert_call_inputs(body: dict[str, Any]) -> dict[str, Any]:
    """Convert fields that slots hold in another form. JSON becomes text, to keep the order of its keys."""
    values: dict[str, Any] = {}
    if isinstance(body.get("append"), list):
        values["append"] = "\n\n".join([text for text in body["append"] if text.strip()])
    if "data" in body:
        values["data"] = json.dumps(body["data"], ensure_ascii=False, separators=(",", ":"))
        if len(values["data"]) > MAX_DATA_LENGTH:
            raise InvalidInput.on("data", f"Must be at most {MAX_DATA_LENGTH:,} characters of JSON.")
    if "limits" in body:
        limits = dict(body["limits"])
        values["limits"] = limits | ({"parts": limits.pop("sections")} if "sections" in limits else {})
        values["limits"].pop("sections", None)
    if "tools" in body:
        values["tools"] = [tool if isinstance(tool, str) else tool["name"] for tool in body["tools"]]
        values["tool_definitions"] = [
            convert_call_tool(tool) for tool in body["tools"] if not isinstance(tool, str)
        ]
    if "messages" in body:
        values["messages"] = [
            {("text" if name == "content" else name): value for name, value in message.items()}
            for message in body["messages"]
        ]
    return values


def convert_call_tool(tool: dict[str, Any]) -> dict[str, Any]:
    if "parameters" not in tool:
        return tool
    return tool | {"parameters": json.dumps(tool["parameters"], ensure_ascii=False, separators=(",", ":"))}


def require_task_json(client: KeyClient, prompt_request: PromptRequest, number: int) -> dict[str, Any]:
    """Return the task with this number as JSON.

    The scopes of the key are checked first, so that a client cannot find out which tasks other agents have.
    """
    check_key_format(client)
    key = authenticate_key(client)
    check_scopes(key["scopes"], prompt_request)
    # A key that is limited to agents may use only tasks of the agent, not tasks without an agent.
    is_limited = "agents" in key["scopes"]
    task = find_task_json(key["workspace_id"], prompt_request.agent, number, is_own=is_limited)
    if task is None:
        raise ProblemError(validation_problem([FieldError("Task not found.", "/task")]))
    return task


render_prompt_view.operations = {  # type: ignore[attr-defined]  # for the API schema; not called
    "POST": Operation(
        raise_not_implemented,
        "Render a prompt for one call",
        operation_id="renderPrompt",
        bots=True,
        verb=RENDER,
        touches=Touches.LABEL,
        budget="render",
        answer=SERVED_PROMPT_SCHEMA,
        extra_content=TEXT_CONTENT,
        body=RENDER_REQUEST_SCHEMA,
        refusals={410: "erased"},
        body_example={"is_background": True, "host": {"host": "deck-3"}},
        tag="prompts",
    )
}
urlpatterns = [path(f"{PROMPT_PATH}:render", render_prompt_view, name="render")]
