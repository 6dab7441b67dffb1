"""REST endpoint for the size table of a version: where its tokens come from, largest contributors first."""

from typing import Any

from django.urls import URLPattern

from personas.api.exception_handler import RecordNotFound
from personas.api.operations import ApiRequest, Operation
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import (
    array_schema,
    digest_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from personas.api.views import endpoint
from prompts.api_lookup import check_number_bounds, get_visible_prompt, list_prompt_versions
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.sizes.size_table import ContributorLabel, build_size_table, describe_contributors
from prompts.publishing.versions.api import (
    COMMON_OPTIONS,
    NO_TEXT_NOTE,
    VERSION_TOKENS_SCHEMA,
    VERSIONS_PATH,
    can_read_text,
    require_unerased_segments,
)
from prompts.publishing.versions.selectors import get_tool_definitions
from prompts.publishing.versions.serializers import TEXT_SCHEMA

CONTRIBUTOR_SCHEMA = object_schema(
    {
        "kind": {
            "type": "string",
            "description": "The kind of record, `layout` for text of the layout, or `tool_definition`.",
        },
        "id": nullable_schema(TEXT_SCHEMA),
        "revision": nullable_schema(integer_schema(1)),
        "path": TEXT_SCHEMA,
        "name": nullable_schema({"type": "string", "description": NO_TEXT_NOTE}),
        "sections": array_schema(TEXT_SCHEMA, most=1_000),
        "characters": integer_schema(),
        "tokens": integer_schema(),
        "share": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "Share of the tokens of all contributors.",
        },
    },
    title="Contributor",
)
SIZES_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "version": integer_schema(1),
        "digest": digest_schema(),
        "characters": integer_schema(
            description="Tokens of the text of a fetch without slots, and of the tool definitions."
        ),
        "tokens": VERSION_TOKENS_SCHEMA,
        "contributors": array_schema(
            CONTRIBUTOR_SCHEMA, most=100_000, description="Largest first, by their tokens."
        ),
    },
    title="VersionSizes",
)


def read_version_sizes(call: ApiRequest, agent: str, channel: str, number: int) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    version = list_prompt_versions(prompt).filter(number=check_number_bounds(number)).first()
    if version is None:
        raise RecordNotFound(f"This prompt has no version {number}.")
    table = build_size_table(
        require_unerased_segments(version), get_tool_definitions(version), count_tokens_cached
    )
    has_names = can_read_text(call)
    body = {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "version": version.number,
        "digest": version.digest,
        "characters": table.characters,
        "tokens": {"total": table.tokens, "text": table.text_tokens, "tools": table.tool_tokens},
        "contributors": [
            contributor_json(row, has_name=has_names)
            for row in describe_contributors(call.workspace, table.contributors)
        ],
    }
    return json_response(body)


def contributor_json(row: ContributorLabel, *, has_name: bool) -> dict[str, Any]:
    """Serialize a contributor. Names can contain text of the prompt: a memory has no other name."""
    one = row.contributor
    return {
        "kind": one.kind,
        "id": one.origin.id or None,
        "revision": one.origin.revision or None,
        "path": one.origin.path,
        "name": row.name if has_name else None,
        "sections": list(one.sections),
        "characters": one.characters,
        "tokens": one.tokens,
        "share": round(one.share, 4),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        f"{VERSIONS_PATH}/<int:version>/sizes",
        "versions-sizes",
        get=Operation(
            read_version_sizes,
            "List what the tokens of a version come from, largest first",
            operation_id="listPromptVersionSizes",
            answer=SIZES_SCHEMA,
            refusals={410: "erased"},
            **{**COMMON_OPTIONS, "bots": False},
        ),
    ),
]
