"""REST resource for versions: the versions of a prompt, and one version by its digest.

A digest identifies content, not one version: several prompts can share it, and so can versions of one prompt
that returned to an earlier text. The response for a digest contains the data that these versions share, which
never changes, and the first version that the API key may see. `usages` lists all versions with the digest;
that list can grow.

Members, and API keys that act for a member, read versions without a ledger row. Bots receive text only from
operations that are recorded in the ledger (fetch and render); here they get metadata without text.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED_RESPONSES, etag_response
from personas.api.exception_handler import RecordNotFound
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    array_schema,
    datetime_schema,
    digest_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.models import sha256_digest
from prompts.api_lookup import (
    can_see_label,
    check_number_bounds,
    get_visible_prompt,
    is_scope_limited,
    list_prompt_versions,
    list_visible_prompt_ids,
)
from prompts.assembly.segments import Segment
from prompts.errors import PromptErased
from prompts.models import AgentPrompt, PromptVersion
from prompts.publishing.versions.segments import list_content_digests, unpack_segments
from prompts.publishing.versions.selectors import (
    get_prompt_labels,
    get_tool_definitions,
    get_version_contents,
    has_erased_content,
    list_erased_versions,
)
from prompts.publishing.versions.serializers import (
    OFFERED_SKILL_SCHEMA,
    REASON_FIELDS,
    TEXT_SCHEMA,
    USAGE_SCHEMA,
    cause_json,
    offered_skill_json,
    version_usage_json,
)
from prompts.publishing.versions.text_blocks import (
    build_blocks_json,
    build_segments_json,
    list_section_chunks,
)
from prompts.publishing.versions.text_schema import BLOCK_SCHEMA, SEGMENT_SCHEMA, TOKENS_SCHEMA, TOOL_SCHEMA
from prompts.publishing.versions.timeline import group_labels_by_version
from prompts.publishing.versions.version_contents import describe_erasures, list_version_erasures

VERSION_TOKENS_SCHEMA = object_schema(
    {
        "total": integer_schema(description="Tokens of the text and the tool definitions."),
        "text": integer_schema(description="Tokens of the text of a fetch without slots."),
        "tools": integer_schema(description="Tokens of the tool definitions."),
    },
    title="VersionTokens",
)
VERSION_SUMMARY_SCHEMA = object_schema(
    {
        "version": integer_schema(1),
        "digest": digest_schema(),
        "layout": TEXT_SCHEMA,
        "compiler": TEXT_SCHEMA,
        "characters": integer_schema(),
        "tokens": VERSION_TOKENS_SCHEMA,
        "labels": array_schema(TEXT_SCHEMA),
        **REASON_FIELDS,
        "created_at": datetime_schema(),
        "hash": digest_schema(),
        "previous_hash": TEXT_SCHEMA,
    },
    title="VersionSummary",
)
SECTION_SCHEMA = object_schema(
    {"name": TEXT_SCHEMA, "characters": integer_schema(), "tokens": integer_schema()}, title="VersionSection"
)
TEXT_FIELDS = ("text", "text_digest", "blocks", "segments", "tools", "skill_files")
NO_TEXT_NOTE = "Null for bot keys and keys limited to labels. Fetch the prompt instead."
VERSION_SCHEMA = object_schema(
    {
        "digest": digest_schema(),
        "text_digest": nullable_schema(
            digest_schema(description=f"SHA-256 of the text in UTF-8. {NO_TEXT_NOTE}")
        ),
        "layout": TEXT_SCHEMA,
        "characters": integer_schema(),
        "tokens": TOKENS_SCHEMA,
        "sections": array_schema(SECTION_SCHEMA, most=1_000),
        "text": {
            "type": ["string", "null"],
            "description": (f"Slots have their default content. {NO_TEXT_NOTE}"),
        },
        "blocks": nullable_schema({"type": "array", "items": BLOCK_SCHEMA, "description": NO_TEXT_NOTE}),
        "segments": nullable_schema({"type": "array", "items": SEGMENT_SCHEMA, "description": NO_TEXT_NOTE}),
        "tools": nullable_schema(
            {
                "type": "array",
                "items": TOOL_SCHEMA,
                "description": f"Definitions for the provider. {NO_TEXT_NOTE}",
            }
        ),
        "skill_files": nullable_schema(
            array_schema(
                OFFERED_SKILL_SCHEMA,
                most=100_000,
                description=f"The skills that the version offers. {NO_TEXT_NOTE}",
            )
        ),
        "first": USAGE_SCHEMA,
    },
    title="Version",
)
# How many versions with the same digest are searched for one that was not erased.
MAX_SAME_DIGEST = 1_000
USAGE_PARAMETERS = {
    "agent": slug_schema(description="Only usages by this agent."),
    "channel": slug_schema(description="On this channel."),
    "version": integer_schema(1, 2**31 - 1, description="With this version number."),
}
USAGE_LOOKUPS = {"agent": "prompt__agent__slug", "channel": "prompt__channel__slug", "version": "number"}
COMMON_OPTIONS: dict[str, Any] = {"bots": True, "touches": Touches.PROMPT, "tag": "prompt-versions"}


# --- of one prompt -------------------------------------------------------------------------------------


def index(call: ApiRequest, agent: str, channel: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    rows = list_prompt_versions(prompt).defer("segments", "lockfile")
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    labels = get_visible_labels(call, prompt)
    summaries = [version_summary_json(call, row, labels.get(row.pk, [])) for row in page.rows]
    return page_response(call, page, summaries)


def read_version_by_number(call: ApiRequest, agent: str, channel: str, number: int) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    rows = list_prompt_versions(prompt).defer("segments", "lockfile")
    version = rows.filter(number=check_number_bounds(number)).first()
    if version is None:
        raise RecordNotFound(f"This prompt has no version {number}.")
    labels = get_visible_labels(call, prompt)
    return json_response(version_summary_json(call, version, labels.get(version.pk, [])))


def get_visible_labels(call: ApiRequest, prompt: AgentPrompt) -> dict[int, list[str]]:
    """Return the labels within the key's scopes, by the id of their version."""
    labels = group_labels_by_version(prompt, list(get_prompt_labels(prompt)))
    return {
        version: [name for name in names if can_see_label(call.caller, name)]
        for version, names in labels.items()
    }


def token_counts_json(version: PromptVersion) -> dict[str, int]:
    return {"total": version.tokens, "text": version.text_tokens, "tools": version.tool_tokens}


def version_summary_json(call: ApiRequest, version: PromptVersion, labels: list[str]) -> dict[str, Any]:
    return {
        "version": version.number,
        "digest": version.digest,
        "layout": version.layout,
        "compiler": version.compiler,
        "characters": version.characters,
        "tokens": token_counts_json(version),
        "labels": labels,
        **version_reason_json(call, version),
        "created_at": datetime_json(version.created_at),
        "hash": version.hash,
        "previous_hash": version.previous_hash,
    }


def version_reason_json(call: ApiRequest, version: PromptVersion) -> dict[str, Any]:
    """Serialize why a version was built. Messages are text that people wrote, so bots do not get them."""
    if call.caller.is_bot:
        return dict.fromkeys(REASON_FIELDS)
    return {
        "author": version.author_label,
        "message": version.message,
        "causes": [cause_json(cause) for cause in version.causes],
    }


# --- by digest -----------------------------------------------------------------------------------------


def read_version(call: ApiRequest, key: str) -> ApiResponse:
    version = get_version_by_digest(call, key)
    has_text = can_read_text(call)
    text_fields = version_text_json(version) if has_text else dict.fromkeys(TEXT_FIELDS)
    body = {
        "digest": version.digest,
        "layout": version.layout,
        "characters": version.characters,
        "tokens": {
            **token_counts_json(version),
            "sections": {name: tokens for name, (_, tokens) in version.sizes.items()},
        },
        "sections": [
            {"name": name, "characters": characters, "tokens": tokens}
            for name, (characters, tokens) in version.sizes.items()
        ],
        **text_fields,
        "first": version_usage_json(version, version.prompt) | version_reason_json(call, version),
    }
    return etag_response(call, body, f"{key}-{version.pk}" if has_text else f"{key}-{version.pk}-facts")


def can_read_text(call: ApiRequest) -> bool:
    """Whether the API key may read the text: keys of bots and keys limited to some labels may not."""
    return not call.caller.is_bot and "labels" not in call.caller.key.scopes


def version_text_json(version: PromptVersion) -> dict[str, Any]:
    """Serialize text, segments and tools; raise PromptErased if any of them was erased."""
    segments = require_unerased_segments(version)
    text = "".join([segment.text for segment in segments])
    return {
        "text": text,
        "text_digest": sha256_digest(text.encode()),
        **text_parts_json(text, segments),
        "tools": get_tool_definitions(version),
        "skill_files": [offered_skill_json(file) for file in version.skill_files],
    }


def text_parts_json(text: str, segments: Sequence[Segment]) -> dict[str, Any]:
    chunks = list_section_chunks(segments)
    return {"blocks": build_blocks_json(text, chunks), "segments": build_segments_json(chunks)}


def require_unerased_segments(version: PromptVersion) -> tuple[Segment, ...]:
    """Return the segments as built; raise PromptErased if a content was erased."""
    contents = get_version_contents(version, list_content_digests(version.segments, version.tools))
    erased = {digest for digest, data in contents.items() if data is None}
    if erased:
        raise PromptErased(describe_erasures(list_version_erasures(version, erased)))
    return unpack_segments(version.segments, contents)


def list_version_usages(call: ApiRequest, key: str) -> ApiResponse:
    rows = list_versions_with_digest(call, key).defer("segments", "sizes", "lockfile")
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    if not page.rows and "cursor" not in call.query:
        raise RecordNotFound(f"No version with the digest {key}.")
    return page_response(call, page, [version_usage_json(row, row.prompt) for row in page.rows])


def list_versions_with_digest(call: ApiRequest, key: str) -> QuerySet[PromptVersion]:
    """List the versions with the digest `key` that the API key may see, filtered by the query parameters."""
    rows = PromptVersion.objects.in_workspace(call.workspace).filter(digest=key)
    if is_scope_limited(call.caller):
        rows = rows.filter(prompt__in=list_visible_prompt_ids(call.caller))
    for name, field in USAGE_LOOKUPS.items():
        if name in call.query:
            rows = rows.filter(**{field: call.query[name]})
    return rows.select_related("prompt__agent", "prompt__channel").order_by("pk")


def get_version_by_digest(call: ApiRequest, key: str) -> PromptVersion:
    version = find_readable_version(list_versions_with_digest(call, key))
    if version is None:
        raise RecordNotFound(f"No version with the digest {key}.")
    return version


def find_readable_version(rows: QuerySet[PromptVersion]) -> PromptVersion | None:
    """Return the first of these versions, which have one digest; if it was erased, one that was not.

    Versions with the same digest can contain different records of the same text.
    """
    first = rows.first()
    if first is None or not has_erased_content(first):
        return first
    ids = list(rows.values_list("pk", flat=True)[:MAX_SAME_DIGEST])
    erased = list_erased_versions(first.workspace_id, ids)
    return next((rows.get(pk=key) for key in ids if key not in erased), first)


VERSIONS_PATH = "agents/<slug:agent>/channels/<slug:channel>/versions"
urlpatterns: list[URLPattern] = [
    endpoint(
        VERSIONS_PATH,
        "versions-list",
        get=Operation(
            index,
            "List the versions of a prompt, newest first",
            operation_id="listPromptVersions",
            answer=page_schema(VERSION_SUMMARY_SCHEMA),
            query=PAGINATION_PARAMS,
            **COMMON_OPTIONS,
        ),
    ),
    endpoint(
        f"{VERSIONS_PATH}/<int:version>",
        "versions-number",
        get=Operation(
            read_version_by_number,
            "Get a version of a prompt by its number",
            operation_id="getPromptVersionByNumber",
            answer=VERSION_SUMMARY_SCHEMA,
            **COMMON_OPTIONS,
        ),
    ),
    endpoint(
        "prompt-versions/<digest:digest>",
        "versions-one",
        get=Operation(
            read_version,
            "Get a version by its digest",
            operation_id="getPromptVersion",
            answer=VERSION_SCHEMA,
            extra_responses=NOT_MODIFIED_RESPONSES,
            refusals={410: "erased"},
            **COMMON_OPTIONS,
        ),
    ),
    endpoint(
        "prompt-versions/<digest:digest>/usages",
        "versions-places",
        get=Operation(
            list_version_usages,
            "List the prompts and version numbers with this digest",
            operation_id="listPromptVersionUsages",
            answer=page_schema(USAGE_SCHEMA),
            query=PAGINATION_PARAMS,
            **{**COMMON_OPTIONS, "bots": False},
        ),
    ),
]
