"""Versions, labels and places as callers get them."""

from collections.abc import Mapping
from typing import Any

from personas.api.responses import moment_told
from personas.api.schema import Shape, digest, listed, moment, nullable, shape, whole
from prompts.assembly.json_codec import dump
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.versions.selectors import parts_of, report_of, segments_of

TEXT: Shape = {"type": "string"}
REF = shape({"number": whole(1), "digest": digest()})
LABEL = shape({"name": TEXT, "number": whole(1), "digest": digest(), "moved_at": moment()})
CAUSE = shape(
    {
        "kind": TEXT,
        "id": nullable(whole()),
        "revision": nullable(whole()),
        "by": TEXT,
        "message": TEXT,
    },
    description="What changed: a record at a revision, or why else it was built.",
)
PLACE_FIELDS: dict[str, Shape] = {
    "agent": TEXT,
    "channel": TEXT,
    "number": whole(1),
    "author": TEXT,
    "message": TEXT,
    "created_at": moment(),
    "compiler": TEXT,
    "causes": listed(CAUSE, most=20),
    "hash": digest(),
    "previous_hash": {"type": "string", "description": "Of the version before; empty for the first."},
}
PLACE = shape(PLACE_FIELDS, description="A version of one prompt that has this digest.")


def ref(version: PromptVersion) -> dict[str, Any]:
    return {"number": version.number, "digest": version.digest}


def label_told(label: PromptLabel) -> dict[str, Any]:
    return {"name": label.name, **ref(label.version), "moved_at": moment_told(label.moved_at)}


def place_told(version: PromptVersion, prompt: AgentPrompt) -> dict[str, Any]:
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "number": version.number,
        "author": version.author_label,
        "message": version.message,
        "created_at": moment_told(version.created_at),
        "compiler": version.compiler,
        "causes": [cause_told(cause) for cause in version.causes],
        "hash": version.hash,
        "previous_hash": version.previous_hash,
    }


def cause_told(cause: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": str(cause.get("kind", "")),
        "id": cause.get("id"),
        "revision": cause.get("revision"),
        "by": str(cause.get("by", "")),
        "message": str(cause.get("message", "")),
    }


def as_plain(version: PromptVersion) -> dict[str, Any]:
    prompt = version.prompt
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "number": version.number,
        "digest": version.digest,
        "text_digest": version.text_digest,
        "layout": version.layout,
        "compiler": version.compiler,
        "characters": version.characters,
        "tokens": version.tokens,
        "sizes": {
            name: {"characters": characters, "tokens": tokens}
            for name, (characters, tokens) in version.sizes.items()
        },
        "segments": [dump(segment) for segment in segments_of(version)],
        "report": report_of(version),
        "lockfile": {
            "layout": version.layout,
            "compiler": version.compiler,
            **version.lockfile,
            "parts": parts_of(version),
        },
        "causes": version.causes,
        "author": version.author_label,
        "message": version.message,
        "created_at": version.created_at.isoformat(),
        "previous_hash": version.previous_hash,
        "hash": version.hash,
    }
