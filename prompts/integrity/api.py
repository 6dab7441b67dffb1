"""Looks at a version anew: whether every word, digest and link is as it was written."""

from typing import Any

from django.http import Http404
from django.urls import URLPattern

from personas.api.operations import Call, Operation
from personas.api.responses import Answer, answered
from personas.api.schema import digest, flag, listed, shape, whole
from personas.api.views import endpoint
from prompts.integrity.verify.version import faults_of
from prompts.models import PromptVersion
from prompts.versions.api import OF_PLACE, versions_with
from prompts.versions.serializers import TEXT

# A digest can stand in many places; the rest is reached by naming one.
MOST = 20
CHECKED = shape(
    {
        "agent": TEXT,
        "channel": TEXT,
        "number": whole(1),
        "hash": TEXT,
        "is_sound": flag(),
        "faults": listed(TEXT, most=10_000),
    }
)
VERDICT = shape(
    {
        "digest": digest(),
        "is_sound": flag(description="No fault in any of the places looked at."),
        "places": listed(CHECKED, most=MOST),
        "has_more": flag(description=f"At most {MOST} places are looked at: name one for the others."),
    }
)


def verify(call: Call, key: str) -> Answer:
    versions = list(versions_with(call, key).select_related("workspace")[: MOST + 1])
    if not versions:
        raise Http404
    places = [told(version) for version in versions[:MOST]]
    is_sound = all(place["is_sound"] for place in places)
    more = len(versions) > MOST
    return answered({"digest": key, "is_sound": is_sound, "places": places, "has_more": more})


def told(version: PromptVersion) -> dict[str, Any]:
    faults = faults_of(version)
    return {
        "agent": version.prompt.agent.slug,
        "channel": version.prompt.channel.slug,
        "number": version.number,
        "hash": version.hash,
        "is_sound": not faults,
        "faults": faults,
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-versions/<digest:key>/verify",
        "versions-verify",
        get=Operation(
            verify,
            "Check a version and its links in the chain",
            bots=True,
            budget="render",
            answer=VERDICT,
            query=OF_PLACE,
            tag="prompt-versions",
            note="Computed anew each time. Erased words are no fault: their digests still stand.",
        ),
    ),
]
