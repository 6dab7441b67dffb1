"""What differs between two versions, by their digests."""

from typing import Any

from django.urls import URLPattern

from core.text.diff import Line
from personas.api.etags import NOT_MODIFIED, lasting
from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import Answer
from personas.api.schema import Shape, choice, digest, flag, nullable, shape, whole
from personas.api.views import endpoint
from prompts.builds.compiler import tokens_in
from prompts.versions.api import found_version, may_read_words, versions_with, whole_segments
from prompts.versions.diff import Moved, SectionDiff, VersionDiff, compare
from prompts.versions.serializers import TEXT

LINE: Shape = shape(
    {
        "kind": choice(["same", "removed", "added"]),
        "before": nullable(whole(1, description="Its number in the older text.")),
        "after": nullable(whole(1, description="Its number in the newer text.")),
        "text": TEXT,
    }
)
SECTION = shape(
    {
        "name": TEXT,
        "state": choice(["same", "changed", "added", "removed"]),
        "is_moved": flag(),
        "tokens_before": whole(),
        "tokens_after": whole(),
        "lines": {"type": "array", "items": LINE},
        "withheld": {"type": "string", "description": "Why there are no lines although something changed."},
    }
)
MOVED = shape({"kind": TEXT, "id": TEXT, "path": TEXT, "before": TEXT, "after": TEXT})
PREFIX = shape(
    {
        "kept_characters": whole(),
        "kept_tokens": whole(),
        "rewritten_tokens": whole(),
        "section": TEXT,
        "is_beyond_cache": flag(),
    },
    description="How far both begin alike: a provider's cache of the older one is good up to there.",
)
DIFF = shape(
    {
        "before": digest(),
        "after": digest(),
        "token_delta": {"type": "integer"},
        "sections": {"type": "array", "items": SECTION},
        "moved": {"type": "array", "items": MOVED},
        "prefix": PREFIX,
    }
)


def diff(call: Call, key: str) -> Answer:
    """From the version in `against` to this one."""
    after = found_version(call, key)
    if not may_read_words(call):
        raise ProblemError(Problem(403, "out_of_scope", "This key is limited to some labels."))
    against = call.query.get("against")
    if against is None:
        raise wrong("Say which version to compare with.")
    before = versions_with(call, against).first()
    if before is None:
        raise wrong("There is no such version here.")
    found = compare(whole_segments(before), whole_segments(after), tokens_in)
    return lasting(call, told(found, against, key), f"{against}-{key}")


def wrong(said: str) -> ProblemError:
    return ProblemError(invalid([FieldError(said, parameter="against")]))


def told(found: VersionDiff, before: str, after: str) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "token_delta": found.token_delta,
        "sections": [section_told(section) for section in found.sections],
        "moved": [moved_told(one) for one in found.moved],
        "prefix": {
            "kept_characters": found.prefix.kept_characters,
            "kept_tokens": found.prefix.kept_tokens,
            "rewritten_tokens": found.prefix.rewritten_tokens,
            "section": found.prefix.section,
            "is_beyond_cache": found.prefix.is_beyond_cache,
        },
    }


def section_told(section: SectionDiff) -> dict[str, Any]:
    return {
        "name": section.name,
        "state": section.state,
        "is_moved": section.is_moved,
        "tokens_before": section.tokens_before,
        "tokens_after": section.tokens_after,
        "lines": [line_told(line) for line in section.lines],
        "withheld": section.withheld,
    }


def line_told(line: Line) -> dict[str, Any]:
    return {"kind": line.kind, "before": line.before, "after": line.after, "text": line.text}


def moved_told(one: Moved) -> dict[str, Any]:
    origin = one.origin
    return {
        "kind": origin.kind,
        "id": origin.id,
        "path": origin.path,
        "before": one.before,
        "after": one.after,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-versions/<digest:key>/diff",
        "versions-diff",
        get=Operation(
            diff,
            "What differs from another version",
            answer=DIFF,
            query={"against": digest(description="The older version.")},
            needed=("against",),
            others=NOT_MODIFIED,
            refusals={410: "erased"},
            tag="prompt-versions",
            note="It quotes words, and so is not for bots' keys.",
        ),
    ),
]
