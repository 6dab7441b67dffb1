"""Where each stretch of a version came from: record, revision, author, file."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED, lasting
from personas.api.operations import Call, Operation
from personas.api.responses import Answer
from personas.api.schema import Shape, digest, nullable, shape, whole
from personas.api.views import endpoint
from personas.models import Workspace
from prompts.assembly.segments import Origin, Segment
from prompts.provenance.origins import Told, told_of
from prompts.versions.api import OF_PLACE, found_version, whole_segments
from prompts.versions.serializers import TEXT
from prompts.versions.text_rows import Stretch, merged, stretches_of

STRETCH: Shape = shape(
    {
        "start": whole(description="The first character, counted from 0."),
        "end": whole(description="Behind the last character."),
        "first_line": whole(1),
        "last_line": whole(1),
        "section": TEXT,
        "slot": {"type": "string", "description": "What a call may fill here; else empty."},
        "kind": {"type": "string", "description": "The kind of record; `layout` for words of our own."},
        "id": nullable(TEXT),
        "revision": nullable(whole(1)),
        "author": TEXT,
        "path": TEXT,
    }
)
PROVENANCE = shape(
    {
        "digest": digest(),
        "agent": TEXT,
        "channel": TEXT,
        "number": whole(1),
        "stretches": {"type": "array", "items": STRETCH},
    }
)


def provenance(call: Call, key: str) -> Answer:
    version = found_version(call, key)
    prompt = version.prompt
    said = {
        "digest": version.digest,
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "number": version.number,
        "stretches": stretches_told(call.workspace, whole_segments(version)),
    }
    return lasting(call, said, f"{key}-{version.pk}-provenance")


def stretches_told(workspace: Workspace, segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """Neighbours of one origin as one; the words themselves are not repeated."""
    text = "".join([segment.text for segment in segments])
    ends = [at for at, character in enumerate(text) if character == "\n"]
    told = told_of(workspace, [segment.origin for segment in segments])
    return [stretch_told(stretch, ends, told) for stretch in merged(stretches_of(segments))]


def stretch_told(stretch: Stretch, ends: Sequence[int], told: Mapping[Origin, Told]) -> dict[str, Any]:
    origin = stretch.origin
    return {
        "start": stretch.start,
        "end": stretch.end,
        "first_line": bisect_left(ends, stretch.start) + 1,
        "last_line": bisect_left(ends, stretch.end - 1) + 1,
        "section": stretch.section,
        "slot": stretch.slot,
        "kind": origin.kind,
        "id": origin.id or None,
        "revision": origin.revision or None,
        "author": told[origin].author if origin in told else "",
        "path": origin.path,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-versions/<digest:key>/provenance",
        "versions-provenance",
        get=Operation(
            provenance,
            "Where each line of a version came from",
            bots=True,
            answer=PROVENANCE,
            query=OF_PLACE,
            others=NOT_MODIFIED,
            refusals={410: "erased"},
            tag="prompt-versions",
            note="Equal words may have come from other records elsewhere: name the place, or get the first.",
        ),
    ),
]
