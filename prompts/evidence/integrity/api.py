"""REST endpoint that verifies a version: its contents, digests, hash and links in the chain."""

from typing import Any

from django.urls import URLPattern

from personas.api.exception_handler import RecordNotFound
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.responses import ApiResponse, json_response
from personas.api.schema import array_schema, boolean_schema, digest_schema, integer_schema, object_schema
from personas.api.views import endpoint
from prompts.evidence.integrity.verify.version import list_version_faults
from prompts.models import PromptVersion
from prompts.publishing.versions.api import USAGE_PARAMETERS, list_versions_with_digest
from prompts.publishing.versions.serializers import TEXT_SCHEMA

# Many versions can share a digest. To verify versions beyond this number, clients narrow the query.
MAX_CHECKED_VERSIONS = 20
CHECKED_VERSION_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "version": integer_schema(1),
        "hash": TEXT_SCHEMA,
        "is_valid": boolean_schema(),
        "errors": array_schema(TEXT_SCHEMA, most=10_000),
    },
    title="CheckedVersion",
)
VERIFICATION_SCHEMA = object_schema(
    {
        "digest": digest_schema(),
        "is_valid": boolean_schema(description="True if no checked usage has an error."),
        "usages": array_schema(CHECKED_VERSION_SCHEMA, most=MAX_CHECKED_VERSIONS),
        "has_more": boolean_schema(
            description=f"At most {MAX_CHECKED_VERSIONS} usages are checked. To check others, name one."
        ),
    },
    title="VersionVerification",
)


def verify_digest(call: ApiRequest, key: str) -> ApiResponse:
    versions = list(
        list_versions_with_digest(call, key).select_related("workspace")[: MAX_CHECKED_VERSIONS + 1]
    )
    if not versions:
        raise RecordNotFound(f"No version with the digest {key}.")
    usages = [checked_version_json(version) for version in versions[:MAX_CHECKED_VERSIONS]]
    is_valid = all(usage["is_valid"] for usage in usages)
    has_more = len(versions) > MAX_CHECKED_VERSIONS
    return json_response({"digest": key, "is_valid": is_valid, "usages": usages, "has_more": has_more})


def checked_version_json(version: PromptVersion) -> dict[str, Any]:
    faults = list_version_faults(version)
    return {
        "agent": version.prompt.agent.slug,
        "channel": version.prompt.channel.slug,
        "version": version.number,
        "hash": version.hash,
        "is_valid": not faults,
        "errors": faults,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-versions/<digest:digest>/verify",
        "versions-verify",
        get=Operation(
            verify_digest,
            "Verify a version and its hash chain",
            operation_id="verifyPromptVersion",
            touches=Touches.PROMPT,
            budget="render",
            answer=VERIFICATION_SCHEMA,
            query=USAGE_PARAMETERS,
            tag="prompt-versions",
        ),
    ),
]
