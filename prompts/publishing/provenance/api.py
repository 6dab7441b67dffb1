"""REST resource for provenance: the record, revision, author and file behind each span of a version."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED_RESPONSES, etag_response
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.responses import ApiResponse
from personas.api.schema import Schema, digest_schema, integer_schema, nullable_schema, object_schema
from personas.api.views import endpoint
from personas.models import Workspace
from prompts.assembly.segments import Origin, Segment
from prompts.publishing.provenance.origins import OriginLabel, describe_origins
from prompts.publishing.versions.api import USAGE_PARAMETERS, get_version_by_digest, require_unerased_segments
from prompts.publishing.versions.serializers import TEXT_SCHEMA
from prompts.publishing.versions.text_rows import OriginSpan, list_origin_spans, merge_origin_spans

SPAN_SCHEMA: Schema = object_schema(
    {
        "start": integer_schema(description="The first character, counted from 0."),
        "end": integer_schema(description="Position after the last character."),
        "first_line": integer_schema(1),
        "last_line": integer_schema(1),
        "section": TEXT_SCHEMA,
        "slot": {"type": "string", "description": "What a call can fill in here. Empty otherwise."},
        "kind": {"type": "string", "description": "The kind of record, or `layout` for text of the layout."},
        "id": nullable_schema(TEXT_SCHEMA),
        "revision": nullable_schema(integer_schema(1)),
        "author": TEXT_SCHEMA,
        "path": TEXT_SCHEMA,
    },
    title="ProvenanceSpan",
)
PROVENANCE_SCHEMA = object_schema(
    {
        "digest": digest_schema(),
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "version": integer_schema(1),
        "spans": {"type": "array", "items": SPAN_SCHEMA},
    },
    title="Provenance",
)


def version_provenance(call: ApiRequest, key: str) -> ApiResponse:
    version = get_version_by_digest(call, key)
    prompt = version.prompt
    body = {
        "digest": version.digest,
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "version": version.number,
        "spans": provenance_spans_json(call.workspace, require_unerased_segments(version)),
    }
    return etag_response(call, body, f"{key}-{version.pk}-provenance")


def provenance_spans_json(workspace: Workspace, segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """Merge neighbouring spans of the same origin and serialise them as offsets into the text."""
    text = "".join([segment.text for segment in segments])
    newlines = [offset for offset, character in enumerate(text) if character == "\n"]
    labels = describe_origins(workspace, [segment.origin for segment in segments])
    return [
        provenance_span_json(span, newlines, labels)
        for span in merge_origin_spans(list_origin_spans(segments))
    ]


def provenance_span_json(
    span: OriginSpan, newlines: Sequence[int], labels: Mapping[Origin, OriginLabel]
) -> dict[str, Any]:
    origin = span.origin
    return {
        "start": span.start,
        "end": span.end,
        "first_line": bisect_left(newlines, span.start) + 1,
        "last_line": bisect_left(newlines, span.end - 1) + 1,
        "section": span.section,
        "slot": span.slot,
        "kind": origin.kind,
        "id": origin.id or None,
        "revision": origin.revision or None,
        "author": labels[origin].author if origin in labels else "",
        "path": origin.path,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-versions/<digest:digest>/provenance",
        "versions-provenance",
        get=Operation(
            version_provenance,
            "Get the provenance of each segment of a version",
            operation_id="getPromptVersionProvenance",
            touches=Touches.PROMPT,
            answer=PROVENANCE_SCHEMA,
            query=USAGE_PARAMETERS,
            extra_responses=NOT_MODIFIED_RESPONSES,
            refusals={410: "erased"},
            tag="prompt-versions",
        ),
    ),
]
