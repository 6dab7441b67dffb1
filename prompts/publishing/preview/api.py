"""REST endpoint that previews a prompt with an unsaved record; nothing is stored or served."""

from typing import Any

from django.urls import URLPattern

from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches, is_within_limit, out_of_scope_error
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import (
    any_object_schema,
    array_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.contents.services import SaltedDigests
from personas.models import LAYOUTS, Agent, Workspace
from personas.roles import Permission
from prompts.publishing.builds.compiler import BuildResult, NotBuildable
from prompts.publishing.preview.draft_request import DRAFT_SCHEMA, parse_draft
from prompts.publishing.preview.services import ChannelNotUsed, build_preview
from prompts.publishing.provenance.api import SPAN_SCHEMA, provenance_spans_json
from prompts.publishing.provenance.omissions import omissions_json
from prompts.publishing.versions.api import SECTION_SCHEMA, VERSION_TOKENS_SCHEMA, text_parts_json
from prompts.publishing.versions.segments import list_content_digests
from prompts.publishing.versions.serializers import TEXT_SCHEMA
from prompts.publishing.versions.text_schema import BLOCK_SCHEMA, SEGMENT_SCHEMA

PREVIEW_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "layout": TEXT_SCHEMA,
        "digest": nullable_schema(
            digest_schema(
                description=("Digest of the version. Null if it contains text that is not stored yet.")
            )
        ),
        "text_digest": digest_schema(description="SHA-256 of the text in UTF-8."),
        "text": TEXT_SCHEMA,
        "characters": integer_schema(),
        "tokens": VERSION_TOKENS_SCHEMA,
        "token_budget": nullable_schema(integer_schema()),
        "sections": array_schema(SECTION_SCHEMA, most=1_000),
        "blocks": {"type": "array", "items": BLOCK_SCHEMA},
        "segments": {"type": "array", "items": SEGMENT_SCHEMA},
        "spans": {"type": "array", "items": SPAN_SCHEMA},
        "problems": {"type": "array", "items": TEXT_SCHEMA},
        "lost": {
            "type": "array",
            "items": TEXT_SCHEMA,
            "description": "Records that the layout does not use.",
        },
        "cut": any_object_schema(description="Number of omitted characters by part."),
        "omitted": any_object_schema(description="Reason for each omitted part."),
    },
    title="Preview",
)
PREVIEW_REQUEST_SCHEMA = object_schema(
    {
        "agent": slug_schema(),
        "channel": slug_schema(),
        "layout": enum_schema(LAYOUTS, description="A layout other than the agent's.", title="Layout"),
        "record": DRAFT_SCHEMA,
    },
    required=["agent", "channel"],
    title="PreviewInput",
)


def preview_endpoint(call: ApiRequest) -> ApiResponse:
    body = call.body
    agent = get_preview_agent(call, body["agent"])
    check_channel_scope(call, body["channel"])
    draft = parse_draft(call, body["record"], "/record").draft if "record" in body else None
    try:
        build = build_preview(
            call.workspace, agent, body["channel"], draft=draft, layout=body.get("layout", "")
        ).compile()
    except ChannelNotUsed as error:
        raise ProblemError(validation_problem([FieldError(error.message, "/channel")])) from error
    except NotBuildable as error:
        raise ProblemError(validation_problem([FieldError(str(error))])) from error
    return json_response(preview_json(call, build))


def get_preview_agent(call: ApiRequest, name: str) -> Agent:
    rows = Agent.objects.in_workspace(call.workspace).filter(slug=name, archived_at=None)
    agent = rows.first() if call.caller.can_access_agent(name) else None
    if agent is None:
        raise ProblemError(validation_problem([FieldError("Agent not found.", "/agent")]))
    return agent


def check_channel_scope(call: ApiRequest, name: str) -> None:
    if not is_within_limit(call.caller, "channels", name):
        raise out_of_scope_error("channels")


def find_version_digest(workspace: Workspace, build: BuildResult) -> str | None:
    """Return the digest of a version with this text; None if some of its text is not stored."""
    digests = SaltedDigests(workspace)
    names = list_content_digests(build.packed.segments, build.packed.tools)
    digests.find(names)
    return build.packed.apply_salts(digests.by_plain).digest if names <= digests.by_plain.keys() else None


def preview_json(call: ApiRequest, build: BuildResult) -> dict[str, Any]:
    prompt, collected = build.prompt, build.collected
    parts = prompt.report.parts
    return {
        "agent": collected.agent.slug,
        "channel": collected.channel.slug,
        "layout": collected.layout,
        "digest": find_version_digest(call.workspace, build),
        "text_digest": build.packed.text_digest,
        "text": prompt.text,
        "characters": len(prompt.text),
        "tokens": {"total": build.tokens, "text": build.text_tokens, "tools": build.tool_tokens},
        "token_budget": collected.token_budget,
        "sections": [
            {"name": name, "characters": characters, "tokens": tokens}
            for name, (characters, tokens) in build.sizes.items()
        ],
        **text_parts_json(prompt.text, prompt.segments),
        "spans": provenance_spans_json(call.workspace, prompt.segments),
        "problems": [*prompt.report.problems, *collected.problems],
        "lost": list(prompt.report.lost),
        "cut": {part.name: part.cut for part in parts if part.cut},
        "omitted": omissions_json({part.name: part.omitted for part in parts if part.omitted}),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "preview",
        "preview",
        post=Operation(
            preview_endpoint,
            "Preview a prompt with an unsaved record",
            operation_id="previewPrompt",
            permission=Permission.EDIT,
            touches=Touches.PROMPT,
            budget="render",
            body=PREVIEW_REQUEST_SCHEMA,
            answer=PREVIEW_SCHEMA,
            tag="impact",
        ),
    ),
]
