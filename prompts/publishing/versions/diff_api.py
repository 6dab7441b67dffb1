"""REST endpoint that compares two versions given by digest."""

from typing import Any

from django.urls import URLPattern

from core.text.diff import DiffLine
from personas.api.etags import NOT_MODIFIED_RESPONSES, etag_response
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches, out_of_scope_error
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse
from personas.api.schema import (
    Schema,
    boolean_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from personas.api.views import endpoint
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.versions.api import (
    can_read_text,
    find_readable_version,
    get_version_by_digest,
    list_versions_with_digest,
    require_unerased_segments,
)
from prompts.publishing.versions.diff import MovedSegment, SectionDiff, VersionDiff, compare_segments
from prompts.publishing.versions.selectors import get_definition_pair, get_skill_file_pair
from prompts.publishing.versions.serializers import TEXT_SCHEMA

DIFF_LINE_SCHEMA: Schema = object_schema(
    {
        "kind": enum_schema(["same", "removed", "added"], title="LineChange"),
        "before": nullable_schema(integer_schema(1, description="Line number in the older text.")),
        "after": nullable_schema(integer_schema(1, description="Line number in the newer text.")),
        "text": TEXT_SCHEMA,
    },
    title="DiffLine",
)
SECTION_DIFF_SCHEMA = object_schema(
    {
        "name": TEXT_SCHEMA,
        "status": enum_schema(["same", "changed", "added", "removed"], title="DiffStatus"),
        "is_moved": boolean_schema(),
        "tokens_before": integer_schema(),
        "tokens_after": integer_schema(),
        "lines": {"type": "array", "items": DIFF_LINE_SCHEMA},
        "withheld": {"type": "string", "description": "Why no lines are shown although something changed."},
    },
    title="SectionDiff",
)
MOVED_SEGMENT_SCHEMA = object_schema(
    {
        "kind": TEXT_SCHEMA,
        "id": TEXT_SCHEMA,
        "path": TEXT_SCHEMA,
        "before": TEXT_SCHEMA,
        "after": TEXT_SCHEMA,
    },
    title="MovedSegment",
)
CACHE_PREFIX_SCHEMA = object_schema(
    {
        "kept_characters": integer_schema(),
        "kept_tokens": integer_schema(),
        "rewritten_tokens": integer_schema(),
        "section": TEXT_SCHEMA,
        "is_beyond_cache": boolean_schema(),
    },
    description=(
        "Length of the common prefix: a provider's cache of the older version stays valid up to there."
    ),
    title="CachePrefix",
)
DIFF_SCHEMA = object_schema(
    {
        "before": digest_schema(),
        "after": digest_schema(),
        "token_delta": {"type": "integer"},
        "sections": {"type": "array", "items": SECTION_DIFF_SCHEMA},
        "tools": {
            "type": "array",
            "items": SECTION_DIFF_SCHEMA,
            "description": "The tool definitions by name. Their lines are indented JSON.",
        },
        "skill_files": {
            "type": "array",
            "items": SECTION_DIFF_SCHEMA,
            "description": "The skill files that changed, by name. They cost no tokens of the prompt.",
        },
        "moved": {"type": "array", "items": MOVED_SEGMENT_SCHEMA},
        "prefix": CACHE_PREFIX_SCHEMA,
    },
    title="VersionDiff",
)


def read_version_diff(call: ApiRequest, key: str) -> ApiResponse:
    """Compare the version in the query parameter `against` (older) with the version in the path (newer)."""
    after = get_version_by_digest(call, key)
    if not can_read_text(call):
        raise out_of_scope_error("labels")
    against = call.query.get("against")
    if against is None:
        raise build_against_error("Name the version to compare with.")
    before = find_readable_version(list_versions_with_digest(call, against))
    if before is None:
        raise build_against_error("Version not found.")
    diff = compare_segments(
        require_unerased_segments(before),
        require_unerased_segments(after),
        count_tokens_cached,
        tools=get_definition_pair(before, after),
        skill_files=get_skill_file_pair(before, after),
    )
    return etag_response(call, version_diff_json(diff, against, key), f"{against}-{key}")


def build_against_error(message: str) -> ProblemError:
    return ProblemError(validation_problem([FieldError(message, parameter="against")]))


def version_diff_json(diff: VersionDiff, before: str, after: str) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "token_delta": diff.token_delta,
        "sections": [section_diff_json(section) for section in diff.sections],
        "tools": [section_diff_json(tool) for tool in diff.tools],
        "skill_files": [section_diff_json(file) for file in diff.skill_files],
        "moved": [moved_segment_json(segment) for segment in diff.moved],
        "prefix": {
            "kept_characters": diff.prefix.kept_characters,
            "kept_tokens": diff.prefix.kept_tokens,
            "rewritten_tokens": diff.prefix.rewritten_tokens,
            "section": diff.prefix.section,
            "is_beyond_cache": diff.prefix.is_beyond_cache,
        },
    }


def section_diff_json(section: SectionDiff) -> dict[str, Any]:
    return {
        "name": section.name,
        "status": section.status,
        "is_moved": section.is_moved,
        "tokens_before": section.tokens_before,
        "tokens_after": section.tokens_after,
        "lines": [diff_line_json(line) for line in section.lines],
        "withheld": section.withheld,
    }


def diff_line_json(line: DiffLine) -> dict[str, Any]:
    return {"kind": line.kind, "before": line.before, "after": line.after, "text": line.text}


def moved_segment_json(segment: MovedSegment) -> dict[str, Any]:
    origin = segment.origin
    return {
        "kind": origin.kind,
        "id": origin.id,
        "path": origin.path,
        "before": segment.before,
        "after": segment.after,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-versions/<digest:digest>/diff",
        "versions-diff",
        get=Operation(
            read_version_diff,
            "Compare two versions",
            operation_id="diffPromptVersions",
            touches=Touches.PROMPT,
            answer=DIFF_SCHEMA,
            query={"against": digest_schema(description="The older version.")},
            required_params=("against",),
            extra_responses=NOT_MODIFIED_RESPONSES,
            refusals={410: "erased"},
            tag="prompt-versions",
        ),
    ),
]
